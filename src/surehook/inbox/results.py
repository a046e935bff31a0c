"""Results of handlers: a hash of what they return is kept with the run, and compared when an event is replayed.

What JSON cannot hold (a cursor, a row of an ORM) is counted by the name of its type, and told once for each handler: an event
must not fail for a value that nobody asked for, as `lambda event, tx: tx.execute(…)` gives one. What nobody has waited for is a
failure, as the work was not done then, and so is an error in the place of a result: its author means that it was not done.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Sequence

import msgspec

from surehook.core.errors import SurehookError
from surehook.inbox.handlers import Handler, HandlerOutcome
from surehook.inbox.safe_log import log

# Of the usual result, nothing: it is hashed once for each event.
_NOTHING = msgspec.json.encode([None])
_SHA256_OF_NOTHING = hashlib.sha256(_NOTHING).digest()
_RAISE = "raise it, or return Later(…), Ignore(…) or Refuse(…)"


class NotAwaited(SurehookError):
    """A handler has returned something that nobody waits for, or thrown it away."""

    @classmethod
    def of(cls, handler: Handler, coroutine: str) -> NotAwaited:
        """Make the error for a coroutine that nobody awaited."""
        if handler.is_async:
            return cls(f"{handler.name} has called {coroutine} and not awaited it: await {coroutine}(…)")
        return cls(
            f"{handler.name} has called {coroutine}, a coroutine that nobody awaits: make the handler `async def`, and await it "
            "there"
        )


class ErrorReturned(SurehookError):
    """A handler has returned an error, or the class of an answer, by which it would have been done."""


def check_awaited(handler: Handler, result: object) -> None:
    """Check a handler's result. Raises NotAwaited."""
    if result is not None and inspect.isawaitable(result):
        if inspect.iscoroutine(result):
            result.close()  # or Python warns beside
        raise NotAwaited(
            f"{handler.name} has returned a {type(result).__name__} that nobody awaits: make it `async def`, and await it there"
        )


def check_no_error(handler: Handler, result: object) -> None:
    """Check that a handler has not returned what is to be raised. Raises ErrorReturned."""
    if isinstance(result, type) and issubclass(result, BaseException):
        if issubclass(result, HandlerOutcome):
            raise ErrorReturned(
                f"{handler.name} has returned the class {result.__name__}: write `return {result.__name__}(…)`, or raise it"
            )
        raise ErrorReturned(f"{handler.name} has returned the class {result.__name__}: {_RAISE}")
    if isinstance(result, BaseException) and not isinstance(result, HandlerOutcome):
        raise ErrorReturned(f"{handler.name} has returned an error, {type(result).__name__}: {_RAISE}")


class Results:
    """Hashes of results, and the handlers of which it was logged that theirs mean nothing."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def sha256(self, handlers: Sequence[Handler], results: Sequence[object]) -> bytes:
        """Hash what the handlers of an event returned."""
        try:
            text = msgspec.json.encode(results, order="sorted")
        # Of an unknown type, with keys that are no text, half surrogate pairs, a list within itself.
        except Exception:
            pairs = zip(handlers, results, strict=True)
            text = msgspec.json.encode([self._plain(*pair) for pair in pairs], order="sorted")
        return _SHA256_OF_NOTHING if text == _NOTHING else hashlib.sha256(text).digest()

    def _plain(self, handler: Handler, result: object) -> object:
        try:
            return msgspec.Raw(msgspec.json.encode(result, order="sorted"))
        except Exception:
            kind = type(result).__name__
            if handler.name not in self._told:
                self._told.add(handler.name)
                log.warning(
                    "%s has returned a %s, which is no JSON, so a replay is not compared by it: return nothing, or what JSON "
                    "can hold",
                    handler.name, kind,
                )  # fmt: skip
            return kind
