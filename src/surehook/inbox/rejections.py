"""Log lines about events that ended `rejected` although no handler said so: they were answered 200, and nobody else
hears of them.

Bounded: a line a minute for each rule of a type of a source.
"""

from __future__ import annotations

from collections.abc import Callable

from surehook.core import ids
from surehook.inbox.document_runs import Decided
from surehook.inbox.event import PREFIX
from surehook.inbox.gaps import LOUD
from surehook.inbox.log_limits import OncePer
from surehook.inbox.quoting import quoted
from surehook.inbox.safe_log import log
from surehook.ports.inbox import Settlement
from surehook.ports.inbox_runs import Run

TELL_S = 60.0
NO_DOCUMENT = "no_document"

# By rule: what to do about it.
CURES = {
    NO_DOCUMENT: "correct `document=` of the Fields, or follow fewer types, and replay it",
    "no_number": "correct `sequence=` of the Fields, and replay it",
    "flaw": "correct the Fields, or what the sender sends, and replay it",
    "unknown_type": "name the type in the table, and replay it",
}
FOR_PEOPLE = "it is recorded for people to look at"


class Rejections:
    """`boot` counts seconds."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._lines = OncePer(boot, TELL_S)

    def report(self, run: Run, ended: Settlement) -> None:
        """Log one run that ended, if its document was not found."""
        if ended.state == "rejected" and ended.error_code == NO_DOCUMENT:
            self._tell(run, NO_DOCUMENT, ended.error or "")

    def decided(self, one: Decided) -> None:
        """Log one committed decision, if it rejected the event."""
        if one.run is not None and one.step.verdict == "conflict" and one.step.rule not in LOUD:
            self._tell(one.run, one.step.rule, one.step.reason)

    def _tell(self, run: Run, rule: str, reason: str) -> None:
        if self._lines.may((run.source, run.type, rule)):
            log.warning(
                "%s %s of %s is rejected: %s [%s]; %s",
                ids.text(PREFIX, run.event),
                quoted(run.type or "an event without a type"),
                run.source,
                reason,
                rule,
                CURES.get(rule, FOR_PEOPLE),
            )
