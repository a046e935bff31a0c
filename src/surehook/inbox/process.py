"""What is done with claimed runs, in one transaction: effects, and the mark that they are done.

A batch of runs shares a transaction, as requests do on their way in; each has a savepoint of its own, so one that fails is
undone alone and is still settled with the others. What makes the whole transaction fail is nobody's fault that can be named:
then each run gets a transaction of its own, and the one that fails there is the one.

Only runs that the token still owns are begun. They stay locked until the commit, so no other worker can take them meanwhile:
either the effects and the mark are both there, or neither is.
"""

from __future__ import annotations

import hashlib
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from surehook.core.verification import VerifyError
from surehook.inbox import event as events
from surehook.inbox.handlers import Handler, Handlers, Ignore, Later, Refuse, Say, named
from surehook.inbox.sources.source import Source
from surehook.ports.inbox import Book, Run, Settlement, StoreError


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


class Done(Struct):
    """What a batch came to: how each run was settled, and which events gave another result than before."""

    settlements: list[Settlement]
    changed: list[Run]
    lost: int = 0  # runs that another worker had taken


class Processor:
    """Handlers, sources and rules, ready to process. `fraction()` gives chance for waits."""

    def __init__(
        self,
        handlers: Handlers,
        sources: Mapping[str, Source],
        backoff: Backoff,
        fraction: Callable[[], float],
        now: Callable[[], int],
    ) -> None:
        self._handlers = handlers
        self._sources = sources
        self._backoff = backoff
        self._fraction = fraction
        self._now = now

    def process(self, book: Book, runs: Sequence[Run], token: bytes) -> Done:
        """Handle what is still ours, settle it, and leave the commit to the caller."""
        mine = book.hold([run.id for run in runs], token)
        held = [run for run in runs if run.id in mine]
        settlements = [self._one(book, run) for run in held]
        changed = self._changed(book, held, settlements)
        book.settle(settlements)
        return Done(settlements, changed, len(runs) - len(held))

    def fail(self, book: Book, run: Run, token: bytes, error: Exception) -> Done:
        """Settle a run whose transaction could not be committed."""
        mine = book.hold([run.id], token)
        settlements = [self._failed(run, error, "commit_failed")] if mine else []
        book.settle(settlements)
        return Done(settlements, [], 0 if mine else 1)

    def _one(self, book: Book, run: Run) -> Settlement:
        if run.attempts > self._backoff.attempts:  # the last ones ended with their process
            return self._end(run, "dead", code="attempts_exhausted")
        source = self._sources.get(run.source)
        if source is None:
            return self._failed(run, None, "unknown_source")
        if run.body is None:
            return self._end(run, "rejected", code="body_expired")
        handlers = self._handlers.fitting(run.source, run.type)
        if not handlers:
            return self._end(run, "ignored", code="no_handler")
        try:
            event = events.read(run, source)
        except VerifyError as error:  # it was read before it was stored: the source was changed since
            return self._failed(run, error, "unreadable")
        try:
            with book.savepoint():
                result = [_called(book, handler, event) for handler in handlers]
                sha256 = hashlib.sha256(msgspec.json.encode(result, order="sorted")).digest()
        except Say as said:
            return self._said(run, said, handlers)
        except StoreError:
            raise
        except Exception as error:
            return self._failed(run, error, "handler_failed", handlers)
        return self._well(run, handlers, sha256)

    def _well(self, run: Run, handlers: Sequence[Handler], sha256: bytes) -> Settlement:
        now = self._now()
        final = all(one.final for one in handlers)
        ended = self._end(run, "finalized" if final else "processed", handlers=handlers)
        ended.processed_at = now
        ended.finalized_at = now if final else None
        ended.result_sha256 = sha256
        return ended

    def _said(self, run: Run, said: Say, handlers: Sequence[Handler]) -> Settlement:
        if isinstance(said, Later):
            ended = self._end(run, "accepted", code="later", error=str(said), handlers=handlers)
            ended.due_at = self._now() + said.wait_ms
            ended.attempts = run.attempts - 1
            return ended
        if isinstance(said, Refuse):
            return self._end(run, "rejected", code=said.code, error=str(said), handlers=handlers)
        assert isinstance(said, Ignore)
        return self._end(run, "ignored", code="ignored", error=str(said), handlers=handlers)

    def _failed(
        self, run: Run, error: Exception | None, code: str, handlers: Sequence[Handler] = ()
    ) -> Settlement:
        wait = self._backoff.wait_ms(run.attempts, self._fraction())
        text = None if error is None else "".join(traceback.format_exception(error))
        ended = self._end(
            run, "dead" if wait is None else "accepted", code=code, error=text, handlers=handlers
        )
        ended.due_at = None if wait is None else self._now() + wait
        return ended

    def _end(
        self,
        run: Run,
        state: Any,
        *,
        code: str | None = None,
        error: str | None = None,
        handlers: Sequence[Handler] = (),
    ) -> Settlement:
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

    def _changed(self, book: Book, held: Sequence[Run], settlements: Sequence[Settlement]) -> list[Run]:
        """Replays that gave another result than the event gave before, marked as such."""
        again = [
            (run, ended)
            for run, ended in zip(held, settlements, strict=True)
            if run.number > 0 and ended.result_sha256 is not None
        ]
        if not again:
            return []
        before = book.last_results([run.event for run, _ in again])
        changed = []
        for run, ended in again:
            ended.changed = before.get(run.event, ended.result_sha256) != ended.result_sha256
            if ended.changed:
                changed.append(run)
        return changed


def _called(book: Book, handler: Handler, event: events.Event) -> Any:
    with book.tx(is_async=handler.is_async) as tx:
        result = handler.function(event, tx)
        if handler.is_async:
            result = book.wait(result)
    if isinstance(result, Say):
        raise result
    return result


def _plain(text: str | None) -> str | None:
    """PostgreSQL stores no NUL in a text, and no database half a surrogate pair."""
    return None if text is None else text.replace("\0", "␀").encode("utf-8", "replace").decode()
