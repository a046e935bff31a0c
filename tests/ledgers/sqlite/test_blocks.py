"""Blocks: a list that goes by them says what walking every row would say, whatever happens between the steps."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from surehook.ledgers.blocks import EVENTS, LINES, BlockTable, Group
from surehook.ledgers.common import deliveries, lists
from surehook.ledgers.common.indexes import IN_ONE_FILE
from surehook.ledgers.common.steps import Steps
from surehook.ledgers.sqlite import SqliteLedger, prune
from surehook.ledgers.sqlite.blocks import Blocks, BlockWrites, keep, mark_of
from surehook.ledgers.sqlite.core_sql import compiled
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import query
from surehook.ports.reading import DeliveryFilter, EventFilter
from tests.budget import every
from tests.ledgers.making import NOW
from tests.ledgers.sqlite.watching import WatchedDriver

SEEDS = range(20)
BLOCK_ROWS, SETTLE_ROWS = 2, 5  # a group of 124
COMMON, RARE_EVERY = 3, 97  # values of each field, and one that few have
_LINE = """insert into attempt (
  delivery, seq, lane, started_at, outcome, end, finished_at, tenant, endpoint, type, event, headers, body
) values (?, ?, 0, 0, ?, ?, 0, ?, ?, ?, ?, x'', x'')"""
_EVENT = """insert into event (id, tenant, type, schema_version, accepted_at, digest, fan_out)
values (?, ?, ?, '1', 0, x'', 1)"""


class Made(NamedTuple):
    """A finished delivery and its event, which have one id here."""

    id: bytes
    tenant: str
    endpoint: bytes
    type: str
    outcome: str
    end: str

    def fits(self, where: dict[str, Any]) -> bool:
        return all(getattr(self, {"state": "end"}.get(name, name)) == value for name, value in where.items())


class World:
    """A book, what is in it, and a hand that makes blocks."""

    def __init__(self, ledger: SqliteLedger, seed: int) -> None:
        self.ledger = ledger
        self.chance = random.Random(seed)
        self.rows: list[Made] = []  # in the order of their coming
        self.blocks = Blocks(block_rows=BLOCK_ROWS, settle_rows=SETTLE_ROWS)
        self._at = NOW
        self._number = 0

    @property
    def session(self) -> SqliteSession:
        return self.ledger._writing

    def come(self, count: int) -> None:
        """Rows with ids of about now, some of long ago, and lines of retries."""
        with self.session.writing():
            for _ in range(count):
                self._at += self.chance.choice((0, 0, 1, 50))
                is_late = self.rows and self.chance.random() < 0.1
                at = self.chance.randrange(NOW, self._at + 1) if is_late else self._at
                self._one(at.to_bytes(6, "big") + self.chance.randbytes(10))

    def _one(self, id: bytes) -> None:
        self._number += 1
        rare = self._number % RARE_EVERY == 0
        pick = self.chance.randrange(COMMON)
        row = Made(
            id, "rare" if rare else f"t{pick}", bytes((9 if rare else pick,)) * 16,
            "rare" if rare else f"y{self.chance.randrange(COMMON)}",
            "garbled" if rare else "delivered", "dropped" if rare else "delivered",
        )  # fmt: skip
        line = (row.tenant, row.endpoint, row.type, id)
        if self.chance.random() < 0.1:
            self.session.run(_LINE, (id, 127, "timed_out", None, *line))
        self.session.run(_LINE, (id, 191, row.outcome, row.end, *line))
        self.session.run(_EVENT, (id, row.tenant, row.type))
        self.rows.append(row)

    def go(self, rows: list[Made]) -> None:
        """These are pruned."""
        with self.session.writing():
            prune._remove_finished(self.session, [row.id for row in rows])
            prune._remove_events(self.session, [row.id for row in rows])
            self.blocks.shrank()
        self.rows = [row for row in self.rows if row not in rows]

    def step(self) -> bool:
        """One step, and something in between now and then."""
        step = self.blocks.look(self.session)
        if step is None:
            return False
        if self.chance.random() < 0.3:
            self.go(self.rows[-self.chance.randrange(1, 30) :])
            self.come(self.chance.randrange(40))
        elif self.chance.random() < 0.3:
            self.come(self.chance.randrange(20))
        keep(self.session, step)
        return True

    async def check(self) -> None:
        """Every list has what was made, in pages of any size."""
        values: dict[str, tuple[Any, ...]] = {
            "tenant": ("t0", "rare", "nobody"), "type": ("y1", "rare"), "outcome": ("garbled", "delivered"),
            "endpoint": (bytes(16), b"\x09" * 16), "state": ("delivered",),
        }  # fmt: skip
        for name in values:
            for value in values[name]:
                await self._is_found({name: value})
        await self._is_found({"tenant": "t1", "type": "y2"})
        await self._is_found({"state": "dropped", "type": "rare"})

    async def _is_found(self, where: dict[str, Any]) -> None:
        wanted = sorted((row.id for row in self.rows if row.fits(where)), reverse=True)
        assert [one async for one in self._pages(self.ledger.deliveries, DeliveryFilter(**where))] == wanted
        if where.keys() <= {"tenant", "type"}:
            assert [one async for one in self._pages(self.ledger.events, EventFilter(**where))] == wanted

    async def _pages(self, ask: Any, where: Any) -> AsyncIterator[bytes]:
        limit, after, is_first = self.chance.choice((13, 50, 200)), None, True
        while is_first or after is not None:
            page = await ask(where, limit=limit, after=after)
            for one in page.data:
                yield one.id
            after, is_first = page.next, False


@pytest.fixture
async def book(runner: Any, tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    ledger = SqliteLedger(str(tmp_path / "book.db"), inline=True)
    await ledger.open(now=NOW)
    yield ledger
    await ledger.close()


@pytest.mark.parametrize("seed", every(20, SEEDS))
async def test_a_list_says_what_is_there(book: SqliteLedger, seed: int) -> None:
    world = World(book, seed)
    for _ in range(12):
        world.come(world.chance.randrange(120))
        for _ in range(world.chance.randrange(4)):
            world.step()
        if world.chance.random() < 0.2:
            world.go(world.rows[: world.chance.randrange(100)])
        if world.chance.random() < 0.2:
            world.go(world.rows[-world.chance.randrange(1, 40) :])
    await world.check()
    for _ in range(200):
        if not world.step():
            break
    await world.check()


async def test_groups_stand_end_to_end_up_to_the_mark_and_become_fewer(book: SqliteLedger) -> None:
    world = World(book, 1)
    for _ in range(8):
        world.come(100)
        while world.step():
            pass
    before = _groups(world.session, LINES)
    world.go([row for number, row in enumerate(world.rows) if number % 9])
    while world.step():
        pass
    for _ in range(4 * len(before)):  # one pair a look
        world.step()
    for source in (LINES, EVENTS):
        groups = _groups(world.session, source)
        assert 0 < len(groups) < len(before)
        assert groups[0].edges[0] == b""
        ends = [group.edges[-1] for group in groups]
        assert ends == [*(group.edges[0] for group in groups[1:]), mark_of(world.session, source).upto]
        assert all(list(group.edges) == sorted(group.edges) for group in groups)
    await world.check()


async def test_old_groups_are_looked_at_after_something_was_removed_and_then_no_more(tmp_path: Path) -> None:
    """Whatever lies there costs nothing by lying there."""
    driver = WatchedDriver()
    book = SqliteLedger(str(tmp_path / "book.db"), inline=True, driver=driver)
    await book.open(now=NOW)
    world = World(book, 3)
    world.come(600)

    def looks() -> int:
        driver.ran.clear()
        for _ in range(200):
            step = world.blocks.look(world.session)
            if step is not None:
                keep(world.session, step)
        return driver.ran.count(query("block_group"))

    looks()
    assert looks() == 0
    world.go(world.rows[:1])
    groups = sum(len(_groups(world.session, source)) for source in (LINES, EVENTS))
    assert 0 < looks() <= groups + 2
    assert looks() == 0
    assert query("some_lines") not in driver.ran, "nor is what is new counted where nothing has come"
    world.come(1)
    looks()
    assert query("some_lines") in driver.ran
    await book.close()


def _groups(session: SqliteSession, source: BlockTable) -> list[Group]:
    sql = "select first, cuts from block_group where source = ? order by first"
    return [Group.read(*row) for row in session.rows(sql, (source.name,))]


async def test_a_step_that_was_looked_at_before_row_numbers_came_back_is_taken_anew(
    book: SqliteLedger,
) -> None:
    world = World(book, 2)
    world.come(200)
    step = world.blocks.look(world.session)
    assert isinstance(step, BlockWrites)
    world.go(world.rows[-10:])
    world.come(10)
    assert keep(world.session, step) is False


LISTS: dict[str, Callable[[], Steps[Any]]] = {
    "deliveries": lambda: deliveries.deliveries(
        DeliveryFilter(tenant="nobody"), limit=50, after=None, indexes=IN_ONE_FILE
    ),
    "deliveries of two": lambda: deliveries.deliveries(
        DeliveryFilter(tenant="rare", type="y1", state="delivered"), limit=50, after=None, indexes=IN_ONE_FILE
    ),
    "dead letters": lambda: deliveries.dead_letters(
        DeliveryFilter(type="rare"), limit=50, after=None, indexes=IN_ONE_FILE
    ),
    "all dead letters": lambda: deliveries.dead_letters(DeliveryFilter(), limit=50, after=None),
    "events": lambda: lists.events(EventFilter(type="rare"), limit=50, after=None, indexes=IN_ONE_FILE),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTS)
async def test_no_statement_of_a_list_goes_through_a_table(book: SqliteLedger, name: str) -> None:
    world = World(book, 3)
    world.come(600)
    while world.step():
        pass
    steps = LISTS[name]()
    statement = next(steps)
    with suppress(StopIteration):
        while True:
            sql, parameters = compiled(statement)
            plan = [row[3] for row in world.session.rows(f"explain query plan {sql}", parameters)]
            assert not [step for step in plan if step.startswith("SCAN")], plan
            statement = steps.send(world.session.rows(sql, parameters))
