"""How far walks of retention are: kept in the ledger, so that neither a restart nor another node begins anew."""

from __future__ import annotations

from surehook.ledgers.postgres.session import Session
from surehook.ledgers.postgres.statements import query


async def places(session: Session) -> dict[str, bytes]:
    """The place of each walk that has one."""
    return {row["walk"]: row["place"] for row in await session.rows(query("retention_places"))}


async def keep_place(session: Session, walk: str, place: bytes) -> None:
    """Inside a transaction: it is there once what it tells of is."""
    await session.run(query("retention_place_keep"), walk, place)


async def drop_places(session: Session, *walks: str) -> None:
    await session.run(query("retention_place_drop"), list(walks))


class Marks:
    """Places as one process knows them, written down where they have moved far enough."""

    def __init__(self) -> None:
        self._written: dict[str, bytes] = {}
        self._now: dict[str, bytes] = {}

    async def load(self, session: Session, *, shared: str) -> None:
        """What is known here holds; the place of the walk `shared` is where the last one of all nodes ended."""
        self._written = await places(session)
        self._now.pop(shared, None)
        self._now = {**self._written, **self._now}

    def of(self, walk: str) -> bytes:
        return self._now.get(walk, b"")

    async def move(self, session: Session, walk: str, place: bytes, *, apart_ms: int = 0) -> None:
        """Places that begin with an instant are written once they have moved by `apart_ms`, or back."""
        self._now[walk] = place
        written = self._written.get(walk, b"")
        moved_ms = int.from_bytes(place[:6], "big") - int.from_bytes(written[:6], "big")
        if place == written or 0 <= moved_ms < apart_ms:
            return
        await session.change(query("retention_place_keep"), walk, place)
        self._written[walk] = place
