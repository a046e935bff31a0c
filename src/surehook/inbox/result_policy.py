"""The end of one run, by what its handlers did: the rules of success, of handlers' answers, of failure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec import Struct, structs

from surehook.core.errors import SurehookError, causes
from surehook.inbox import hints
from surehook.inbox.backoff import Backoff
from surehook.inbox.calls import HandlerCall, HandlerCalls
from surehook.inbox.deadline import Deadlines, Over
from surehook.inbox.event import Event
from surehook.inbox.handler_errors import HandlerError, bare, marked, told, words
from surehook.inbox.handlers import Handler, HandlerOutcome, Handlers, Ignore, Later, Refuse, named
from surehook.inbox.results import NotAwaited, Results, check_awaited, check_no_error
from surehook.inbox.sql.handler_commits import HandlerEndedIt
from surehook.ports.inbox import Settlement, StoreError, Transaction
from surehook.ports.inbox_runs import Run, State
from surehook.ports.inbox_tries import Try

_HANDLER = "__surehook_handler__"  # of an error: the handler that raised it


class HandlerTimeout(SurehookError):
    """A handler was cancelled or given up, as it was not done in time."""

    @classmethod
    def of(cls, handler: Handler, seconds: float) -> HandlerTimeout:
        """Make the error of a handler, with its sentence and what to do."""
        error = cls(
            f"{handler.name} was not done after {round(seconds, 3):g} s: give what it waits for a timeout of its own, or the "
            "handler more time (timeout_s= of on, or of Rules)"
        )
        setattr(error, _HANDLER, handler)
        return error


class Called(Struct, frozen=True):
    """Handlers that were called for a run, and the hash of what they returned."""

    handlers: tuple[Handler, ...]
    sha256: bytes


class ResultPolicy:
    """Rules for the end of a run. `fraction()` draws a number in [0, 1) for waits, `now()` gives Unix milliseconds."""

    def __init__(
        self,
        handlers: Handlers,
        backoff: Backoff,
        fraction: Callable[[], float],
        now: Callable[[], int],
        *,
        calls: HandlerCalls,
        within_s: float,
    ) -> None:
        """`within_s`: for all handlers of an event together, which is half a lease."""
        self.handlers = handlers
        self.backoff = backoff
        self._fraction = fraction
        self.now = now
        self._calls = calls
        self._within_s = within_s
        self._results = Results()
        self._deadlines = Deadlines()

    def back_at(self, ended: Settlement) -> int | None:
        """The instant by which a run with this end is handed in again: as it is due, or as its lease lapses, if a process ends
        with it. None: it is not handed in again."""
        if ended.state not in ("accepted", "parked"):
            return None
        return (ended.due_at or self.now()) + round(2_000 * self._within_s)

    def call(
        self, transaction: Transaction, run: Run, event: Event, hearing: tuple[Handler, ...] | None = None
    ) -> Called:
        """Give the event to every handler that fits, or to those of them that are to hear. Raises what they raise or say."""
        fitting = self.handlers.fitting(run.source, run.type) if hearing is None else hearing
        calls = self._calls
        began = calls.boot()
        ends = began + self._within_s
        result = []
        for handler in fitting:
            until = min(began + handler.timeout_s, ends)
            if until <= began:
                raise HandlerTimeout(
                    f"those before {handler.name} took all of {self._within_s:g} seconds, which is half a lease: give what they "
                    "wait for a timeout, or all of them more time (Rules(lease_ms=…))"
                )
            call = calls.begin(run, handler, began, until)
            try:
                result.append(_blamed(transaction, call, event, until - began, self._deadlines))
            finally:
                began = calls.end(call)
            if began > ends:  # it blocked the loop; the database ends a transaction that idles for as long
                raise HandlerTimeout.of(handler, began - call.began)
        return Called(fitting, self._results.sha256(fitting, result))

    def succeeded(self, run: Run, called: Called) -> Settlement:
        """End a run whose handlers are done."""
        now = self.now()
        final = all(one.final for one in called.handlers)
        ended = self.end(run, "finalized" if final else "processed", handlers=called.handlers)
        ended.processed_at, ended.finalized_at = now, now if final else None
        ended.result_sha256 = called.sha256
        return ended

    def failed_with(self, run: Run, error: Exception, code: str = "handler_failed") -> Settlement:
        """End a run whose handler chose another outcome, or failed."""
        handlers = self.handlers.fitting(run.source, run.type)
        if isinstance(error, Later):
            ended = self.end(run, "accepted", code="later", error=words(error), handlers=handlers)
            return structs.replace(
                ended, due_at=self.now() + error.wait_ms, attempts=max(run.attempts - 1, 0)
            )
        if isinstance(error, Refuse):
            return self.end(run, "rejected", code=_plain(error.code), error=words(error), handlers=handlers)
        if isinstance(error, Ignore):
            return self.end(run, "ignored", code="ignored", error=words(error), handlers=handlers)
        if isinstance(error, HandlerEndedIt):  # each further attempt would keep its effects once more
            return self.dead(run, "handler_commits", str(error), handlers=handlers, raised=error)
        if (late := _timeout_of(error)) is not None:
            return self.failed(run, "handler_timeout", str(late), handlers=handlers, raised=late)
        raised = bare(error)
        # It came after they had returned, as what they did was to be kept.
        if handlers and _failing(error) is None:
            with suppress(Exception):
                hints.add(raised, handler=named(handlers)[0])
        if isinstance(error, HandlerError):
            code = "handler_failed"
        said = told(raised, [one.function for one in handlers])
        return self.failed(run, code, said, handlers=handlers, raised=raised)

    def failed(
        self,
        run: Run,
        code: str,
        error: str | None = None,
        *,
        handlers: Sequence[Handler] = (),
        raised: BaseException | None = None,
    ) -> Settlement:
        """Try again after a wait, or give up: dead."""
        wait = self._backoff(raised, handlers).wait_ms(run.attempts, self._fraction())
        ended = self.end(
            run, "dead" if wait is None else "accepted", code=code, error=error, handlers=handlers
        )
        due_at = None if wait is None else self.now() + wait
        return structs.replace(ended, due_at=due_at, tried=self.history(run, ended, raised))

    def _backoff(self, raised: BaseException | None, handlers: Sequence[Handler]) -> Backoff:
        """Choose the backoff of the handler that failed; where nobody knows which it was, of the first that has one."""
        failing = _failing(raised)
        own = (one.retry for one in (handlers if failing is None else (failing,)))
        return next((one for one in own if one is not None), self.backoff)

    def attempts(self, run: Run) -> int:
        """Count the attempts that an event may have, whichever of its handlers fails."""
        handlers = self.handlers.fitting(run.source, run.type)
        return max(
            (one.retry or self.backoff for one in handlers), default=self.backoff, key=_attempts
        ).attempts

    def dead(
        self, run: Run, code: str, error: str, *, handlers: Sequence[Handler], raised: BaseException
    ) -> Settlement:
        """Give a run up at once, whatever attempts are left."""
        ended = self.end(run, "dead", code=code, error=error, handlers=handlers)
        return structs.replace(ended, tried=self.history(run, ended, raised))

    def exhausted(self, run: Run) -> Settlement:
        """Give a run up: its last attempts ended with their processes."""
        ended = self.end(run, "dead", code="attempts_exhausted")
        return structs.replace(ended, tried=self.history(run, ended, None))

    def history(self, run: Run, ended: Settlement, raised: BaseException | None) -> Try:
        """Describe the attempt, for its event's history."""
        failing = _failing(raised)
        return Try(
            event=run.event,
            at=self.now(),
            number=run.number,
            attempt=run.attempts,
            code=ended.error_code or "",
            handler=ended.handler if failing is None else failing.name,
            name=None if raised is None else type(raised).__name__,
            message=ended.error if raised is None else _plain(words(raised)),
        )

    def parked(self, run: Run, code: str) -> Settlement:
        """Park a run that nobody here can handle yet; the attempt is not counted."""
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
        """End a run in this state, without further rules."""
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


def _blamed(
    transaction: Transaction, call: HandlerCall, event: Event, seconds: float, deadlines: Deadlines
) -> object:
    """Call the handler; mark an error with the handler's name."""
    try:
        result = _called(transaction, call.handler, event, seconds, deadlines)
        if call.unawaited is not None:
            raise NotAwaited.of(call.handler, call.unawaited)
        return result
    except Exception as error:
        raised = bare(error)
        with suppress(Exception):  # of a class that takes no marks
            setattr(raised, _HANDLER, call.handler)
        with suppress(Exception):
            hints.add(raised)
        raise


def _timeout_of(error: Exception) -> HandlerTimeout | None:
    """Find the handler's timeout in an error, or in that of a transaction which was lost with it.

    A handler that is cancelled while it asks the database loses the transaction. One that blocked its loop comes back to a
    transaction that the database has ended: to undo it fails too, and so does to end it, each with an error of its own.
    """
    if not isinstance(error, HandlerTimeout | StoreError):
        return None
    return next((one for one in causes(error) if isinstance(one, HandlerTimeout)), None)


def _failing(error: BaseException | None) -> Handler | None:
    for one in (error, getattr(error, "__cause__", None)):
        with suppress(Exception):  # of a class that answers for any attribute
            found = getattr(one, _HANDLER, None)
            if isinstance(found, Handler):
                return found
    return None


def _attempts(one: Backoff) -> int:
    return one.attempts


def _called(
    transaction: Transaction, handler: Handler, event: Event, seconds: float, deadlines: Deadlines
) -> object:
    with transaction.tx(is_async=handler.is_async) as tx:
        try:
            result = handler.function(event, tx)
            if handler.is_async:
                result = deadlines.bound(transaction.wait, result, seconds)
        except Over as error:
            raise HandlerTimeout.of(handler, seconds) from error
        except BaseException as error:
            if (theirs := marked(error)) is not None:
                raise theirs from error
            raise
        if result is not None:
            check_awaited(handler, result)
            check_no_error(handler, result)
            if isinstance(result, HandlerOutcome):
                raise result
    return result


def _plain(text: str | None) -> str | None:
    """Make a text storable: PostgreSQL takes no NUL, and no database half a surrogate pair."""
    return None if text is None else text.replace("\0", "␀").encode("utf-8", "replace").decode()
