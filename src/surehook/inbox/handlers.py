"""Handlers: the functions for events, and the outcomes that they may choose.

A handler returns: done, and what it returned is remembered by its hash. It may also raise or return

    Later("30s")       not now; try again after that, and do not count this one
    Ignore("reason")   nothing to do here
    Refuse("code")     never: rejected for good, until somebody replays it

Each of these, and any other exception, undoes what the handler did in `tx`. Other exceptions are failures: tried again by the
inbox's backoff, and dead after the last attempt.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from tokenize import TokenError
from typing import Any, ClassVar, Protocol, TypeAlias, TypedDict, TypeVar

from msgspec import Struct

from surehook.core import instants
from surehook.core.errors import Problem, SettingsError, SurehookError
from surehook.inbox.backoff import Backoff
from surehook.inbox.event import Event
from surehook.inbox.given_texts import checked_code
from surehook.inbox.patterns import check_pattern, matches
from surehook.inbox.rules import Rules


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


# Of any inbox; each of them knows what its `tx` may be (`ConnectionHandler` and others).
F = TypeVar("F", bound="Callable[[Event, Any], object]")

NAME_CHARS = 256
VERSION_CHARS = 64
LATER_MS = 30 * instants.DAY_MS  # longer than that nobody remembers what was waited for
MEMO = 4_096  # pairs of source and type whose handlers are remembered


class HandlerOutcome(SurehookError):
    """A handler's answer other than success."""


class Later(HandlerOutcome):
    """Try again after `wait` (`30s`, `5m`, or seconds); the attempt is not counted. Raises SettingsError for no duration."""

    def __init__(self, wait: str | float, reason: str = "") -> None:
        super().__init__(reason or f"later: {wait}")
        try:
            self.wait_ms = instants.parse_duration(str(wait))
        except Problem as problem:
            raise SettingsError("wait", problem.detail, hint=problem.hint) from None
        if not 0 < self.wait_ms <= LATER_MS:
            raise SettingsError("wait", "more than 0 and at most 30 days")


class Ignore(HandlerOutcome):
    """There is nothing to do; recorded as that."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)


class Refuse(HandlerOutcome):
    """Never: the event is rejected with this code (`[a-z0-9_]`, for machines) and sentence. Raises SettingsError for another."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(detail or code)
        self.code = checked_code(code)


# What a handler gives back: what JSON can hold (of a UUID its text). A coroutine is none of these, and that is how a type checker
# tells one.
Returned: TypeAlias = (
    bool | int | float | str | bytes | date | time | timedelta | Decimal | Enum
    | Struct | _Dataclass | Mapping[Any, Any] | Collection[Any] | HandlerOutcome | None
)  # fmt: skip


class HandlerOptions(TypedDict, total=False):
    """The options of `on`, which describes them."""

    version: str | None
    final: bool
    name: str | None
    timeout_s: float | None
    retry: Backoff | None
    informational: bool


class Handler(Struct, frozen=True, gc=False):
    """One function for the events of a source whose type fits a pattern.

    version  of what it does; two results of one event are compared with it
    final    its success is the last word; otherwise the event waits as `processed` for `finalize` or `reject`
    timeout_s  after that it is given up: a coroutine is cancelled, a thread left behind
    retry    how an event is tried again that it failed; None: as the inbox does
    informational  it also hears of events that a workflow calls informational
    """

    function: Callable[..., Any]
    source: str
    pattern: str
    name: str
    version: str
    final: bool
    is_async: bool
    timeout_s: float
    retry: Backoff | None = None
    informational: bool = False

    def fits(self, source: str, type: str | None) -> bool:
        return self.source in ("*", source) and matches(self.pattern, type)


class Handlers:
    """All handlers, in the order in which they were defined; an event is given to every one that fits."""

    def __init__(self, rules: Rules, *, may_wait: bool) -> None:
        self._all: list[Handler] = []
        self._rules = rules
        self._may_wait = may_wait
        self.fitting = lru_cache(maxsize=MEMO)(self._fitting)

    def add(
        self,
        function: F,
        source: str,
        pattern: str,
        *,
        version: str | None,
        final: bool,
        name: str | None,
        timeout_s: float | None,
        retry: Backoff | None = None,
        informational: bool = False,
    ) -> F:
        check_pattern(pattern)
        _check_kind("final", final, bool, "final=False")
        _check_kind("informational", informational, bool, "informational=True")
        if version is not None:
            _check_kind("version", version, str, 'version="2"')
        if name is not None:
            _check_kind("name", name, str, 'name="invoices"')
        if retry is not None:
            _check_kind("retry", retry, Backoff, "retry=Backoff(first_s=60, attempts=5)")
        _check_call(function)
        is_async = _is_coroutine(function)
        if is_async and not self._may_wait:
            raise SettingsError(
                "handler",
                f"{_called(function)} is a coroutine, for which an AsyncInbox is needed",
                hint="AsyncInbox(url), or `def` in place of `async def`",
            )
        called = name or f"{function.__module__}.{getattr(function, '__qualname__', 'handler')}"
        made = Handler(
            function=function,
            source=source,
            pattern=pattern,
            name=called[-NAME_CHARS:],
            version=(version or _version(function))[:VERSION_CHARS],
            final=final,
            is_async=is_async,
            timeout_s=self._rules.timeout(timeout_s),
            retry=retry,
            informational=informational,
        )
        self._all.append(made)
        self.fitting.cache_clear()
        return function

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Handler]:
        return iter(self._all)

    def adopt(self, other: Handlers, change: Callable[[Handler], Handler]) -> None:
        """Take over what another one has, each changed by `change`."""
        self._all.extend(change(one) for one in other._all)
        self.fitting.cache_clear()

    def _fitting(self, source: str, type: str | None) -> tuple[Handler, ...]:
        """Those that fit; a function that was given for several patterns hears of an event once, of information if one asks."""
        found: list[Handler] = []
        for one in self._all:
            if not one.fits(source, type):
                continue
            # By equality: a method is another object each time, and a callable need have no hash.
            same = next((at for at, other in enumerate(found) if other.function == one.function), None)
            if same is None:
                found.append(one)
            elif one.informational and not found[same].informational:
                found[same] = one
        return tuple(found)


def _check_kind(option: str, value: object, kind: type, hint: str) -> None:
    if not isinstance(value, kind):
        raise SettingsError(option, f"a {type(value).__name__} is no {kind.__name__}", hint=hint)


def _check_call(function: Callable[..., object]) -> None:
    _check_takes(
        "handler",
        function,
        ("event", "tx"),
        "def handler(event, tx): …; tx is the transaction in which its work stands or falls",
    )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise SettingsError(
            "handler",
            f"{_called(function)} has a `yield`, so calling it does nothing",
            hint="return, or nothing at all",
        )


def _check_takes(what: str, function: Callable[..., object], given: tuple[str, ...], hint: str) -> None:
    try:
        inspect.signature(function).bind(*given)
    except TypeError as error:
        raise SettingsError(
            what, f"{_called(function)} cannot be called with ({', '.join(given)}): {error}", hint=hint
        ) from None
    except ValueError:  # one of C, which does not say what it takes
        return


def _called(function: Callable[..., object]) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))[-NAME_CHARS:]


def _is_coroutine(function: Callable[..., object]) -> bool:
    """Tell whether calling it makes a coroutine; an object's class may have `async def __call__`."""
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def check_blocking(what: str, function: Callable[..., object]) -> None:
    """Check a function that is called with one value after a commit, and not awaited. Raises SettingsError."""
    _check_takes(what, function, ("told",), f"def {what}_hook(told): …")
    if _is_coroutine(function):
        raise SettingsError(
            what,
            f"{_called(function)} is a coroutine, which nobody would await",
            hint="`def` in place of `async def`; in a loop, asyncio.get_running_loop().create_task(…) begins one",
        )


def _version(function: Callable[..., object]) -> str:
    """Make a version from a function's text, since nobody remembers to count."""
    try:
        text = inspect.getsource(function).encode()
    except (OSError, TypeError, SyntaxError, TokenError):  # no file, or one that is another by now
        code = getattr(function, "__code__", None)
        text = b"" if code is None else code.co_code + repr(code.co_consts).encode()
    return hashlib.sha256(text).hexdigest()[:12]


def named(handlers: Sequence[Handler]) -> tuple[str, str]:
    """Write down the names and versions of an event's handlers, which most often is one."""
    if len(handlers) == 1:
        return handlers[0].name, handlers[0].version
    return (
        ",".join(one.name for one in handlers)[:NAME_CHARS],
        ",".join(one.version for one in handlers)[:VERSION_CHARS],
    )
