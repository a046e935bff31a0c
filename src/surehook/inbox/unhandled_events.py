"""Events that nobody here can handle: no handler fits, or their source is not defined. None of them is swallowed.

A misspelt name, a module with handlers that was not imported, a process of the version before: for all of these the event
waits, `parked`, and a warning is logged once a minute for each type. Types that are not wanted at all are the source's
setting `ignore`.

Workers look for parked events that fit by now, some rows at a time: whoever defines the handler, in whichever process,
takes them up. During a deployment an old process may park what a new one has taken up; it ends with the old process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from surehook.core import ids
from surehook.inbox.event import PREFIX
from surehook.inbox.following import Following
from surehook.inbox.handlers import Handlers
from surehook.inbox.log_limits import OncePer
from surehook.inbox.quoting import quoted
from surehook.inbox.safe_log import log
from surehook.inbox.sources.source import Source
from surehook.ports.inbox import UNHANDLED, UNKNOWN_SOURCE, Settlement, Transaction
from surehook.ports.inbox_runs import Run

ROWS = 500  # looked at in one transaction: some milliseconds
STEP_MS = 1_000  # between two steps of one pass over all that is parked
PASS_MS = 10_000  # between the end of a pass and the next
LATE_MS = 60_000  # after which a document is nobody's: who follows its type looks each second
TELL_S = 60.0


class UnhandledEvents:
    """Parks events that have no handler, and takes them up. `now` gives Unix milliseconds, `boot` seconds."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        handlers: Handlers,
        following: Following,
        *,
        now: Callable[[], int],
        boot: Callable[[], float],
    ) -> None:
        self._sources = sources
        self._handlers = handlers
        self._following = following
        self._now = now
        self._after = b""
        self._looks_at = -PASS_MS
        self._telling = OncePer(boot, TELL_S)

    def report(self, run: Run, ended: Settlement) -> None:
        """Warn that an event waits, once in a while for each type."""
        if ended.error_code not in UNHANDLED or not self._telling.may((run.source, run.type)):
            return
        ref = ids.text(PREFIX, run.event)
        if ended.error_code == UNKNOWN_SOURCE:
            log.warning(
                "no source %r is defined here: %s waits, parked, until one is; sources: %s",
                run.source, ref, ", ".join(self._sources) or "none",
            )  # fmt: skip
            return
        log.warning(
            "no handler fits %s of %s: %s waits, parked, until one does (is its module imported, its pattern right?), or "
            "until the source says that it is not wanted (ignore=)",
            run.type or "an event without a type", run.source, ref,
        )  # fmt: skip

    @property
    def is_due(self) -> bool:
        """True if it is time to look."""
        return not 0 < self._looks_at - self._now() <= PASS_MS

    def look(self, transaction: Transaction) -> bool:
        """Take up what can be handled by now; whether there was any."""
        now = self._now()
        self._looks_at = now + PASS_MS  # also where this fails
        self._look_for_documents(transaction, now)
        found = transaction.unhandled(after=self._after, limit=ROWS)
        is_all = len(found) < ROWS
        self._after = b"" if is_all else found[-1][0]
        if not is_all:
            self._looks_at = now + STEP_MS
        if fitting := [run for run, source, type in found if self._fits(source, type)]:
            log.info("%d parked events have a handler by now", transaction.take_up(fitting, now=now))
        return bool(fitting)

    def _look_for_documents(self, transaction: Transaction, now: int) -> None:
        """Warn of documents whose time has passed and whose type nobody follows: what waits in them would wait for ever."""
        types = [one.document_type for one in self._following.workflows]
        for document_type, document in transaction.unfollowed(types, before=now - LATE_MS, limit=ROWS):
            if self._telling.may(("document", document_type)):
                log.warning(
                    "documents of type %s should go on, and are not followed here; who follows them elsewhere, if anybody, is "
                    "behind, and what waits in %s waits for that (inbox.follow)",
                    document_type, quoted(document),
                )  # fmt: skip

    def _fits(self, source: str, type: str | None) -> bool:
        known = self._sources.get(source)
        if known is None:
            return False
        is_followed = self._following.of(source, type) is not None
        return is_followed or known.ignores(type) or bool(self._handlers.fitting(source, type))
