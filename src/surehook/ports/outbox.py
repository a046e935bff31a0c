"""Rows of an outbox: who has them, and who publishes them (`surehook.outbox.relay` ties both)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from surehook.core.errors import SurehookError
from surehook.core.outbox import OutboxCount, OutboxRow
from surehook.core.outbox_answers import RefusedRow, RowAnswer


class RowsAway(SurehookError):
    """The database with the rows cannot be asked now. Nothing is lost: a row is removed after its event is on disk."""


class NotPublished(SurehookError):
    """The server has taken none of the rows: it is away, or has refused the request as a whole with this answer."""

    def __init__(self, why: str, answer: RowAnswer | None = None) -> None:
        super().__init__(why)
        self.answer = answer


class RowStore(Protocol):
    """The rows in a database, for one caller. Calls raise RowsAway."""

    async def take(self, limit: int, size: int, resting: Collection[str]) -> list[OutboxRow] | None:
        """The next rows, but none of tenants that rest; None: another one reads now. They are ours until `settle` or
        `release`, and anybody's again when this process dies.

        limit  rows at most
        size   characters of their payloads together, of which one row may have more
        """
        ...

    async def settle(self, published: Sequence[int], refused: Sequence[RefusedRow]) -> None:
        """Remove these rows, and put those aside."""
        ...

    async def release(self) -> None:
        """Give back what was taken, as it is."""
        ...

    async def idle(self, seconds: float) -> None:
        """Nothing was there: wait for so long, or until there may be something."""
        ...

    async def count(self) -> OutboxCount:
        """Count what waits and what was put aside, whoever reads. Not between `take` and `settle`."""
        ...

    async def close(self) -> None: ...


# Publishes rows together and answers for each. Raises NotPublished.
Publish = Callable[[list[OutboxRow]], Awaitable[list[RowAnswer]]]
