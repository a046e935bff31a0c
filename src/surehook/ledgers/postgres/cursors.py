"""The positions of retention's walks, stored in the ledger so that neither a restart nor another node starts over."""

from __future__ import annotations

from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query


async def read_cursors(session: PostgresSession) -> dict[str, bytes]:
    """Read the position of each walk that has one."""
    return {row["walk"]: row["place"] for row in await session.rows(query("retention_places"))}


async def save_cursor(session: PostgresSession, walk: str, place: bytes) -> None:
    """Save a position in the transaction of the step that reached it."""
    await session.run(query("retention_place_keep"), walk, place)


async def drop_cursors(session: PostgresSession, *walks: str) -> None:
    await session.run(query("retention_place_drop"), list(walks))


class Cursors:
    """The positions as one process knows them, saved once they have moved far enough."""

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}

    async def load(self, session: PostgresSession, *, shared: str) -> None:
        """Load saved positions. Those of this process win, except for the walk `shared`, which all nodes continue."""
        self._written = await read_cursors(session)
        self._now.pop(shared, None)
        self._now = {**self._written, **self._now}

    def of(self, walk: str) -> bytes:
        return self._now.get(walk, b"")

    async def move(self, session: PostgresSession, walk: str, place: bytes, *, apart_ms: int = 0) -> None:
        """Move a walk. Its position begins with an instant, and is saved once it has moved by `apart_ms`, or back."""
        self._now[walk] = place
        written = self._written.get(walk, b"")
        moved_ms = int.from_bytes(place[:6], "big") - int.from_bytes(written[:6], "big")
        if place == written or 0 <= moved_ms < apart_ms:
            return
        await session.change(query("retention_place_keep"), walk, place)
        self._written[walk] = place
