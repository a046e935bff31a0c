"""Documents of seven events, what each event comes to in its turn (by hand), and the model of arrival.

The model knows nothing of tables. An event that comes again is a duplicate; one that comes while a number before it is
missing is early; any other has its turn, and after it all that waited and are missing nothing any more, by number.
"""

from __future__ import annotations

from typing import NamedTuple

from surehook.core.workflow.decide import Arrival

SENT, VIEWED, SIGNED, COUNTERSIGNED = (
    "document.sent",
    "document.viewed",
    "document.signed",
    "document.countersigned",
)
COMPLETED, DECLINED, VOIDED, CERTIFICATE = (
    "document.completed", "document.declined", "document.voided", "certificate.attached"
)  # fmt: skip


class Line(NamedTuple):
    """One event of a document: what it is, and what it comes to when it has its turn."""

    type: str
    party: str | None
    verdict: str
    after: str


# Two signers, an identity check, and the certificate that comes when all is done.
AGREED = (
    Line(SENT, None, "applied", "sent"),
    Line(VIEWED, "ana", "applied", "viewed"),
    Line("identity.verified", "ana", "informational", "viewed"),
    Line(SIGNED, "ana", "applied", "signed"),
    Line(SIGNED, "bob", "applied", "signed"),
    Line(COMPLETED, None, "applied", "completed"),
    Line(CERTIFICATE, None, "informational", "completed"),
)
# One who declines, and everything that may be said after it.
DECLINES = (
    Line(SENT, None, "applied", "sent"),
    Line(VIEWED, "ana", "applied", "viewed"),
    Line(VIEWED, "ana", "no_op", "viewed"),
    Line(DECLINED, "ana", "applied", "declined"),
    Line(SIGNED, "ana", "conflict", "declined"),
    Line(VIEWED, "bob", "stale", "declined"),
    Line(VOIDED, None, "conflict", "declined"),
)


def arrivals(lines: tuple[Line, ...]) -> tuple[Arrival, ...]:
    """The events, numbered from 1."""
    return tuple(
        Arrival(id=f"evt_{number}", type=line.type, sequence=number, party=line.party)
        for number, line in enumerate(lines, start=1)
    )


Told = tuple[str, str, str, bool]  # event, verdict, state after it, whether it had waited


def expected(lines: tuple[Line, ...], arrived: frozenset[int], number: int) -> list[Told]:
    """What must be told when event `number` comes after the events of `arrived`."""
    settled = 0
    while settled + 1 in arrived:
        settled += 1
    state = lines[settled - 1].after if settled else "draft"
    if number in arrived:
        return [(f"evt_{number}", "duplicate", state, False)]
    if number != settled + 1:
        return [(f"evt_{number}", "early", state, False)]
    told: list[Told] = []
    while number == settled + 1 or number in arrived:
        line = lines[number - 1]
        told.append((f"evt_{number}", line.verdict, line.after, number != settled + 1))
        number += 1
    return told
