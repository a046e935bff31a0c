"""Rows of an outbox, once a server has answered for them: done, put aside, or to come later."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from surehook.core.outbox import OutboxRow

# Statuses that are no fault of an event, beside 5xx: key and address, limits of a tenant or of the server.
NOT_ITS_FAULT = (401, 403, 404, 408, 429)
# For which a tenant's rows rest, where the server does not say.
REST_S = 1.0
CODE_CHARS, REASON_CHARS = 64, 1_000


class RowAnswer(Struct, frozen=True, gc=False):
    """A server's answer for one row: `code` is None where it has the event on disk."""

    status: int = 202
    code: str | None = None
    detail: str = ""
    retry_after_s: float | None = None

    @property
    def is_final(self) -> bool:
        """True if asking again would be answered in the same way."""
        return self.code is not None and self.status < 500 and self.status not in NOT_ITS_FAULT


TAKEN = RowAnswer()


class RefusedRow(Struct, frozen=True, gc=False):
    """A row that no server takes, and why."""

    position: int
    code: str
    reason: str


def refused_row(position: int, code: str, reason: str) -> RefusedRow:
    """A refusal whose reason every database can store: parts of a payload may stand in it."""
    return RefusedRow(position, storable(code, CODE_CHARS), storable(reason, REASON_CHARS))


def storable(text: object, chars: int) -> str:
    """So much of a text as can be stored and logged everywhere."""
    return str(text)[:chars].encode(errors="replace").decode().replace("\x00", "\ufffd")


class TenantRest(Struct, frozen=True, gc=False):
    """A tenant's rows wait for so long, and why."""

    seconds: float
    code: str
    reason: str


class RowSettlement(Struct, frozen=True):
    """The fate of the rows of one request.

    published  positions of rows that are done with
    refused    rows to put aside
    resting    tenants whose rows wait, the later ones too: rows of a tenant stay in order
    """

    published: list[int]
    refused: list[RefusedRow]
    resting: dict[str, TenantRest]


def settlement(rows: Sequence[OutboxRow], answers: Sequence[RowAnswer]) -> RowSettlement:
    """Judge the answers for `rows`, in their order."""
    published: list[int] = []
    refused: list[RefusedRow] = []
    resting: dict[str, TenantRest] = {}
    for row, answer in zip(rows, answers, strict=True):
        if answer.code is None:
            published.append(row.position)
        elif answer.is_final:
            refused.append(refused_row(row.position, answer.code, answer.detail))
        else:
            seconds = answer.retry_after_s or REST_S
            if row.tenant not in resting or seconds > resting[row.tenant].seconds:
                resting[row.tenant] = TenantRest(seconds, answer.code, answer.detail)
    return RowSettlement(published, refused, resting)
