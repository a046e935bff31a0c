"""Stories of documents, and what each event comes to when it has its turn: written by hand, knowing nothing of tables.

In `strict` order, and in `buffer` where nothing is given up, a document's events have their turn by number, each once,
whatever the order in which they arrive and however often. So its journal, without what came early or again, is its story.
"""

from __future__ import annotations

from typing import NamedTuple

SENT, VIEWED, SIGNED, COMPLETED = "document.sent", "document.viewed", "document.signed", "document.completed"
DECLINED, VOIDED, EXPIRED = "document.declined", "document.voided", "document.expired"
VERIFIED, ATTACHED = "identity.verified", "certificate.attached"


class Line(NamedTuple):
    """One event: what it says, and its verdict and the state after it in its turn. `after` None: whenever it comes, it moves
    nothing, and it has no number."""

    type: str
    verdict: str
    after: str | None
    signer: str | None = None
    version: str | None = None


Story = tuple[Line, ...]

AGREED: Story = (
    Line(SENT, "applied", "sent"),
    Line(VIEWED, "applied", "viewed", "ana"),
    Line(VERIFIED, "informational", "viewed", "ana"),
    Line(SIGNED, "applied", "signed", "ana"),
    Line(SIGNED, "applied", "signed", "bob"),
    Line(COMPLETED, "applied", "completed"),
    Line(ATTACHED, "informational", "completed"),
)
DECLINES: Story = (
    Line(SENT, "applied", "sent"),
    Line(VIEWED, "applied", "viewed", "ana"),
    Line(VIEWED, "no_op", "viewed", "ana"),
    Line(DECLINED, "applied", "declined", "ana"),
    Line(SIGNED, "conflict", "declined", "ana"),
    Line(VIEWED, "stale", "declined", "bob"),
    Line(VOIDED, "conflict", "declined"),
)
EXPIRES: Story = (
    Line(SENT, "applied", "sent"),
    Line(VERIFIED, "informational", None, "ana"),
    Line(VIEWED, "applied", "viewed", "ana"),
    Line(EXPIRED, "applied", "expired"),
    Line(SIGNED, "stale", "expired", "ana"),
    Line(COMPLETED, "conflict", "expired"),
)
VOID: Story = (
    Line(SENT, "applied", "sent"),
    Line(VOIDED, "applied", "voided"),
    Line(SENT, "conflict", "voided"),
    Line(VIEWED, "stale", "voided", "ana"),
)
# One who declines, and a producer who asks again.
AGAIN: Story = (
    Line(SENT, "applied", "sent"),
    Line(VIEWED, "applied", "viewed", "ana"),
    Line(DECLINED, "applied", "declined", "ana"),
    Line(COMPLETED, "conflict", "declined"),
    Line(SENT, "applied", "sent", None, "2"),
    Line(VIEWED, "applied", "viewed", "ana", "2"),
    Line(SIGNED, "applied", "signed", "ana", "2"),
    Line(COMPLETED, "applied", "completed", None, "2"),
    Line(VIEWED, "stale", "completed", "ana", "1"),
)
ONE_WAY = (AGREED, DECLINES, EXPIRES, VOID)  # a terminal state is never left
ALL = (*ONE_WAY, AGAIN)

# For worlds that give numbers up: a state may be leapt over, and never comes back.
RANK = {
    "draft": 0, "sent": 1, "viewed": 2, "signed": 3, "countersigned": 4, "completed": 5, "declined": 5, "voided": 5, "expired": 5,
}  # fmt: skip
TERMINAL = 5


def numbers(story: Story) -> list[int | None]:
    """The sequence number of each line."""
    given, number = [], 0
    for line in story:
        number += line.after is not None
        given.append(number if line.after is not None else None)
    return given
