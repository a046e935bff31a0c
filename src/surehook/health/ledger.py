"""Shared health in the ledger's PostgreSQL, for installations without Redis: a few statements per exchange.

The tables are not part of the ledger. They are unlogged (nothing reaches the WAL, a crash empties them, a standby has
none) and may be dropped at any time: the nodes fill them again. Each node has one connection, for one call at a time. A
call that takes too long raises `HealthAway`, and its connection is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import TypeAlias

import asyncpg

from surehook.core.breaker import BUCKETS
from surehook.core.errors import said
from surehook.ports.health import BUSY_MS, OVERLAP_MS, BreakerUpdate, Counted, HealthAway, HealthReply, View

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"
Place: TypeAlias = tuple[str, str]  # tenant, and key of a breaker

# The longest one call may take, connecting included.
PATIENCE_S = 2.0
# Changes read in one exchange; the next one reads more.
VIEWS_MAX = 5_000
# Exchanges between two deletions of old counts.
SWEEP_EVERY = 300
# A breaker that nobody reports is forgotten after a day; an open one is probed far more often.
KEEP_MS = 86_400_000


class LedgerHealth:
    """Implements ports.health.Health."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection | None = None
        self._lock = asyncio.Lock()
        self._exchanges = 0

    async def open(self) -> None:
        async with self._asked():
            pass

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Nothing under way is worth waiting for.
            connection.terminate()

    async def exchange(
        self,
        *,
        node: bytes,
        counted: Sequence[Counted],
        updates: Sequence[BreakerUpdate],
        busy: Sequence[bytes],
        since: int,
        now: int,
    ) -> HealthReply:
        since = min(since, now - OVERLAP_MS)
        decided, hastened = _by_place(updates, hastened=False), _by_place(updates, hastened=True)
        async with self._asked() as connection:
            # Each transaction takes its rows in one order, so that no two nodes wait for each other.
            await self._hasten(connection, hastened, hastened.keys() - decided, now)
            if decided:
                async with connection.transaction():
                    await self._update(connection, decided, node, now)
                    await self._hasten(connection, hastened, hastened.keys() & decided, now)
            async with connection.transaction():
                counts = await self._count(connection, counted, now)
                asked = {*counts, *decided, *hastened}
                places = _columns(asked) or [[], []]
                rows = await connection.fetch(_query("views"), *places, since, VIEWS_MAX)
                sharers = await self._share(connection, busy, node, now)
            await self._sweep(connection, now)
        views = {(row["tenant"], row["key"]): _view(row, counts) for row in rows}
        newest = max((view.generation for view in views.values()), default=0)
        for place in asked - views.keys():
            views[place] = View(*place, "closed", None, 0, 0, 0, "", *counts.get(place, (None, None)))
        return HealthReply(
            views=list(views.values()), sharers=sharers, since=max(since, min(newest, now) - OVERLAP_MS)
        )

    async def take_probe(self, tenant: str, key: str, *, node: bytes, until: int, now: int) -> bool:
        async with self._asked() as connection:
            return bool(
                await connection.fetchval(_query("take_probe"), tenant, key, node, until, now, OVERLAP_MS)
            )

    async def _sweep(self, connection: Connection, now: int) -> None:
        self._exchanges += 1
        if self._exchanges % SWEEP_EVERY == 1:
            await connection.execute(_query("sweep"), now, now - KEEP_MS)

    @staticmethod
    async def _hasten(
        connection: Connection, hastened: Mapping[Place, BreakerUpdate], places: Set[Place], now: int
    ) -> None:
        if places:
            columns = _columns(
                (*place, hastened[place].probe_at, hastened[place].generation) for place in places
            )
            await connection.execute(_query("hasten"), *columns, now)

    @staticmethod
    async def _update(
        connection: Connection, decided: Mapping[Place, BreakerUpdate], node: bytes, now: int
    ) -> None:
        columns = _columns(
            (*place, one.state, one.reason, one.opened_at, one.probe_at, one.generation, one.again)
            for place, one in decided.items()
        )
        rows = await connection.fetch(_query("update"), *columns, node, now)
        states = {(row["tenant"], row["key"]): row["state"] for row in rows}
        # A new decision met a state that stays: its node must learn the state, so its own generation is passed.
        stayed = [
            (*place, one.generation + (not one.again))
            for place, one in decided.items()
            if place not in states
        ]
        if stayed:
            await connection.execute(_query("raise"), *_columns(stayed))
        closed = [place for place, state in states.items() if state == "closed"]
        if closed:
            await connection.execute(_query("clear"), *_columns(closed))

    @staticmethod
    async def _count(
        connection: Connection, counted: Sequence[Counted], now: int
    ) -> dict[tuple[str, str], tuple[int, int]]:
        if not counted:
            return {}
        rows = sorted(
            (report.tenant, report.key, number, calls, failures, now + 2 * report.window_ms)
            for report in counted
            for number, calls, failures in report.buckets
        )
        # In the same order on every node.
        if rows:
            await connection.execute(_query("count"), *_columns(rows))
        sums = await connection.fetch(
            _query("sums"),
            [report.tenant for report in counted],
            [report.key for report in counted],
            [now * BUCKETS // report.window_ms - BUCKETS for report in counted],
            [(now + OVERLAP_MS) * BUCKETS // report.window_ms for report in counted],
        )
        found = {(row["tenant"], row["key"]): (row["calls"], row["failures"]) for row in sums}
        return {(r.tenant, r.key): found.get((r.tenant, r.key), (0, 0)) for r in counted}

    @staticmethod
    async def _share(
        connection: Connection, busy: Sequence[bytes], node: bytes, now: int
    ) -> dict[bytes, int]:
        if not busy:
            return {}
        await connection.execute(_query("busy"), sorted(busy), node, now + BUSY_MS)
        rows = await connection.fetch(
            "select endpoint, count(*) as nodes from health_busy where endpoint = any($1) and until > $2 and until <= $3"
            " group by 1",
            busy,
            now,
            now + BUSY_MS + OVERLAP_MS,
        )
        return {row["endpoint"]: row["nodes"] for row in rows}

    @asynccontextmanager
    async def _asked(self) -> AsyncIterator[Connection]:
        """Yield the connection, made if there is none. It is closed if anything fails or takes too long."""
        try:
            async with asyncio.timeout(PATIENCE_S), self._lock:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._connect()
                yield self._connection
        except (
            OSError,
            TimeoutError,
            asyncpg.PostgresError,
            asyncpg.InterfaceError,
            asyncpg.InternalClientError,
        ) as error:
            await self.close()
            raise HealthAway(f"PostgreSQL: {said(error)}") from None
        except asyncio.CancelledError:
            # It may be in the middle of a transaction.
            await self.close()
            raise

    async def _connect(self) -> Connection:
        connection: Connection = await asyncpg.connect(
            self._url, timeout=PATIENCE_S, server_settings={"application_name": "surehook health"}
        )
        try:
            # A plan for a few breakers reads the whole table once for each of a thousand.
            await connection.execute("set plan_cache_mode = force_custom_plan; set jit = off")
            await connection.execute(_query("tables"))
        except BaseException:
            connection.terminate()
            raise
        return connection


def _by_place(updates: Sequence[BreakerUpdate], *, hastened: bool) -> dict[Place, BreakerUpdate]:
    """Updates of one kind; of several of one breaker the last one."""
    return {(update.tenant, update.key): update for update in updates if update.hastened is hastened}


def _columns(rows: Iterable[tuple[object, ...]]) -> list[list[object]]:
    """Rows as arrays, for `unnest`; without rows, none."""
    return [list(column) for column in zip(*rows, strict=True)]


def _view(row: asyncpg.Record, counts: dict[tuple[str, str], tuple[int, int]]) -> View:
    calls, failures = counts.get((row["tenant"], row["key"]), (None, None))
    return View(
        tenant=row["tenant"], key=row["key"], state=row["state"], reason=row["reason"],
        opened_at=row["opened_at"], probe_at=row["probe_at"], generation=row["generation"], author=(row["author"] or b"").hex(),
        calls=calls, failures=failures,
    )  # fmt: skip


_queries: dict[str, str] = {}


def _query(name: str) -> str:
    if name not in _queries:
        _queries[name] = (
            files("surehook.health").joinpath("queries", f"{name}.sql").read_text(encoding="utf-8")
        )
    return _queries[name]
