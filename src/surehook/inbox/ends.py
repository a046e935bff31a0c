"""How one run ends, by what its handlers did: the rules of success, of what handlers say, of failure."""

from __future__ import annotations

import asyncio
import hashlib
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec
from msgspec import Struct, structs

from surehook.core.errors import SurehookError
from surehook.inbox.event import Event
from surehook.inbox.handlers import Handler, Handlers, Ignore, Later, Refuse, Say, named
from surehook.ports.inbox import Book, Run, Settlement, State


class Backoff(Struct, frozen=True):
    """How long a failed event waits: `first_s`, then `factor` times as long each time, up to `max_s`, plus up to `jitter` of it.

    The defaults give up after ten attempts and about three hours: a handler that still fails needs a person.
    """

    first_s: float = 1.0
    factor: float = 4.0
    max_s: float = 3600.0
    attempts: int = 10
    jitter: float = 0.2

    def wait_ms(self, attempts: int, fraction: float) -> int | None:
        """After so many attempts the wait, in milliseconds; None: it was the last. `fraction` is in [0, 1)."""
        if attempts >= self.attempts:
            return None
        wait = min(self.first_s * self.factor ** min(attempts - 1, 60), self.max_s)
        return round(wait * (1 + self.jitter * fraction) * 1000)


class HandlerTimeout(SurehookError):
    """A handler was cancelled, as it was not done in time."""


class Called(Struct, frozen=True):
    """Handlers that were called for a run, and the hash of what they returned."""

    handlers: tuple[Handler, ...]
    sha256: bytes


class Ends:
    """The rules, with what they need of the world: `fraction()` gives chance for waits, `now()` Unix milliseconds."""

    def __init__(
        self, handlers: Handlers, backoff: Backoff, fraction: Callable[[], float], now: Callable[[], int]
    ) -> None:
        self.handlers = handlers
        self.backoff = backoff
        self._fraction = fraction
        self.now = now

    def call(self, book: Book, run: Run, event: Event, hearing: tuple[Handler, ...] | None = None) -> Called:
        """Give the event to every handler that fits, or to those of them that are to hear. Raises what they raise or say."""
        fitting = self.handlers.fitting(run.source, run.type) if hearing is None else hearing
        result = [_called(book, handler, event) for handler in fitting]
        return Called(fitting, hashlib.sha256(msgspec.json.encode(result, order="sorted")).digest())

    def well(self, run: Run, called: Called) -> Settlement:
        """Everything was done."""
        now = self.now()
        final = all(one.final for one in called.handlers)
        ended = self.end(run, "finalized" if final else "processed", handlers=called.handlers)
        return structs.replace(
            ended, processed_at=now, finalized_at=now if final else None, result_sha256=called.sha256
        )

    def badly(self, run: Run, error: Exception, code: str = "handler_failed") -> Settlement:
        """A handler said something else, or failed."""
        handlers = self.handlers.fitting(run.source, run.type)
        if isinstance(error, Later):
            ended = self.end(run, "accepted", code="later", error=str(error), handlers=handlers)
            return structs.replace(
                ended, due_at=self.now() + error.wait_ms, attempts=max(run.attempts - 1, 0)
            )
        if isinstance(error, Refuse):
            return self.end(run, "rejected", code=error.code, error=str(error), handlers=handlers)
        if isinstance(error, Ignore):
            return self.end(run, "ignored", code="ignored", error=str(error), handlers=handlers)
        # Cancelled while it asked the database, it lost the transaction as well: then it is the cause of that.
        late = next((one for one in (error, error.__cause__) if isinstance(one, HandlerTimeout)), None)
        if late is not None:
            return self.failed(run, "handler_timeout", str(late), handlers=handlers)
        return self.failed(run, code, "".join(traceback.format_exception(error)), handlers=handlers)

    def failed(
        self, run: Run, code: str, error: str | None = None, *, handlers: Sequence[Handler] = ()
    ) -> Settlement:
        """Again after a wait, or dead."""
        wait = self.backoff.wait_ms(run.attempts, self._fraction())
        ended = self.end(
            run, "dead" if wait is None else "accepted", code=code, error=error, handlers=handlers
        )
        return structs.replace(ended, due_at=None if wait is None else self.now() + wait)

    def parked(self, run: Run, code: str) -> Settlement:
        """Nobody here can handle it yet; the attempt was none."""
        return structs.replace(self.end(run, "parked", code=code), attempts=max(run.attempts - 1, 0))

    def end(
        self,
        run: Run,
        state: State,
        *,
        code: str | None = None,
        error: str | None = None,
        handlers: Sequence[Handler] = (),
    ) -> Settlement:
        """This state, without further rules."""
        name, version = named(handlers) if handlers else (None, None)
        return Settlement(
            run=run.id,
            state=state,
            attempts=run.attempts,
            handler=name,
            handler_version=version,
            error_code=code,
            error=_plain(error),
        )


def _called(book: Book, handler: Handler, event: Event) -> object:
    with book.tx(is_async=handler.is_async) as tx:
        result = handler.function(event, tx)
        if handler.is_async:
            result = book.wait(result if handler.timeout_s is None else _bounded(result, handler.timeout_s))
        if isinstance(result, Say):
            raise result
    return result


async def _bounded(coroutine: Coroutine[Any, Any, object], seconds: float) -> object:
    try:
        async with asyncio.timeout(seconds) as bound:
            return await coroutine
    except TimeoutError as error:
        if bound.expired():
            raise HandlerTimeout(f"not done after {seconds:g} seconds") from error
        raise


def _plain(text: str | None) -> str | None:
    """PostgreSQL stores no NUL in a text, and no database half a surrogate pair."""
    return None if text is None else text.replace("\0", "␀").encode("utf-8", "replace").decode()
