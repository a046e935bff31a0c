"""Worlds of a book that loses power again and again, and what must be true each time.

One world is one seed: a book, a play of calls, and a row of lives. Each life ends at one call to the disk.
What the disk then holds is opened twice: once undisturbed, to be judged, and once as the next life, which
may be cut short in the middle of its recovery.

The judge knows a memory ledger that got every acknowledged call. The book found must be whole
(`integrity_check`) and tell that ledger's story, or the story with the one call that was under way. A call
that was refused with nothing changed (LedgerUnavailable, LedgerFull) is not under way any more.
"""

from __future__ import annotations

import asyncio
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

from lab.ledger.ledger import MemoryLedger
from surehook.core.errors import LedgerBroken, LedgerUnavailable, NodeEvicted, Problem, SurehookError
from surehook.ledgers.sqlite import SqliteLedger
from tests.ledgers.play import CALLS, Call, Play
from tests.ledgers.story import differences, plain, story

from .binding import DiskDriver
from .disk import Disk, Fault, Plan

Control = Literal["none", "normal", "lies"]

LIVES = 12  # of a world: long enough for a history, short enough that telling its story stays cheap
CALLS_MAX = 80  # of a life; most end earlier
# Calls to the disk until the power goes: opening takes some tens, a commit about ten, a checkpoint dozens.
NEAR, FAR = 80, 700
SYNCS = 40
CHECKPOINT_PAGES = (4, 12, 40, 400)
FAULTS: tuple[Fault | None, ...] = (None, None, None, None, "write", "sync", "full")

# Ending an endpoint's deliveries is several transactions, and what a beat wrote no look can tell.
PLAYED = [call for call in CALLS if call not in (Play.end_endpoint, Play.beat)]


class Caught(Exception):
    """The book is not the one that was acknowledged."""


@dataclass
class Tally:
    """What a campaign has seen."""

    points: int = 0
    calls: int = 0
    under_way: int = 0  # points with a call under way
    survived: int = 0  # of those: found in the book although nobody was told
    in_recovery: int = 0  # points before the book was open
    failed: dict[str, int] = field(default_factory=dict)  # calls refused, by error
    worlds: int = 0

    def add(self, other: Tally) -> None:
        for name in ("points", "calls", "under_way", "survived", "in_recovery", "worlds"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.failed.items():
            self.failed[name] = self.failed.get(name, 0) + count


class World:
    """One seed. `run` raises Caught where a life ends in a book that should not be."""

    def __init__(self, seed: int, *, control: Control = "none", lives: int = LIVES) -> None:
        self.tally = Tally(worlds=1)
        self._chance = Random(seed)
        self._control = control
        self._lives = lives
        self._checkpoint_pages = self._chance.choice(CHECKPOINT_PAGES)
        self._model = MemoryLedger()
        self._play = Play(self._model, self._chance.randrange, calls=PLAYED)
        self._first = self._play.first_calls()
        self._under_way: Call | None = None
        self._told: tuple[int, dict[str, Any]] | None = None
        self._files: dict[str, bytes] = {}

    async def run(self) -> Tally:
        for life in range(self._lives):
            disk = Disk(self._files, self._plan())
            await self._live(disk)
            if disk.plan.fault is not None and not disk.is_dead:
                await self._judge(dict_of(disk), f"life {life}, started again", settles=False)
            disk.die()
            self._files = disk.after_power_loss(self._chance)
            await self._judge(self._files, f"life {life}, call {disk.calls} of {disk.plan}")
            self.tally.points += 1
        return self.tally

    def _plan(self) -> Plan:
        at = self._chance.randrange(1, self._chance.choice((NEAR, FAR)))
        fault = self._chance.choice(FAULTS) if self._control == "none" else None
        if fault is None:
            lies, completes = self._control == "lies", self._chance.random() < 0.5
            if self._chance.random() < 0.3:
                sync = self._chance.randrange(1, SYNCS)
                return Plan(lost_at_sync=sync, sync_completes=completes, lies=lies)
            return Plan(power_lost_at=at, sync_completes=completes, lies=lies)
        return Plan(fault=fault, fault_at=at, fault_calls=self._chance.choice((1, 1, 3, 10**9)))

    # -- a life -----------------------------------------------------------------------------------------

    async def _live(self, disk: Disk) -> None:
        """Open the book and make calls until the power, the disk or the patience ends."""
        driver = self._driver(disk, control=True)
        try:
            ledger = SqliteLedger("book", inline=True, driver=driver)
            try:
                await ledger.open(now=self._play.now)
            except SurehookError:
                self._must_be_disturbed(disk)
                self.tally.in_recovery += 1
                return
            for _ in range(CALLS_MAX):
                if not await self._call(ledger, disk):
                    return
        finally:
            driver.end()

    async def _call(self, ledger: SqliteLedger, disk: Disk) -> bool:
        """Make one call on the book, and on the model if it was acknowledged. False: this life is over."""
        call = self._first.pop(0) if self._first else self._play.next_call()
        self.tally.calls += 1
        try:
            answer = await _answer(call, ledger)
        except SurehookError as error:
            self._must_be_disturbed(disk)
            name = type(error).__name__
            self.tally.failed[name] = self.tally.failed.get(name, 0) + 1
            if disk.is_dead or isinstance(error, LedgerBroken):
                self._under_way = call
                self.tally.under_way += 1
                await self._stays_broken(ledger)
                return False
            if not isinstance(error, LedgerUnavailable):
                raise Caught(f"{call.name} raised {error!r}") from error
            if self._first or call.name in ("add_tenant", "add_endpoint", "enter"):
                self._first.insert(0, call)
            return True
        expected = await _answer(call, self._model)
        if plain(answer) != plain(expected):
            raise Caught(f"{call.name} answered {answer}, not {expected}")
        self._told = None
        return True

    async def _stays_broken(self, ledger: SqliteLedger) -> None:
        """After a failed commit the same handle acknowledges nothing more, whatever the disk answers now."""
        try:
            await self._play.accept().on(ledger)
        except LedgerBroken:
            return
        raise Caught("a broken ledger took a batch")

    def _must_be_disturbed(self, disk: Disk) -> None:
        if not disk.is_dead and not disk.faults:
            raise Caught("an error on a disk without faults")

    # -- the judge --------------------------------------------------------------------------------------

    async def _judge(self, files: dict[str, bytes], where: str, *, settles: bool = True) -> None:
        """Open what was found, undisturbed, and compare it with what was acknowledged.

        `settles`: whether the call under way was carried out is now known. A process that starts again on
        the same machine sees pages that the disk may never have got, so it does not settle that.
        """
        driver = self._driver(Disk(files), control=False)
        try:
            ledger = SqliteLedger("book", inline=True, driver=driver)
            await ledger.open(now=self._play.now)
            found = await story(ledger, now=self._play.now)
            whole = driver.integrity()
        except SurehookError as error:
            raise Caught(f"{where}: the book cannot be read: {error!r}") from error
        finally:
            driver.end()
        if whole != "ok":
            raise Caught(f"{where}: integrity_check says {whole}")
        told = await self._story()
        if found == told:
            if settles:
                self._under_way = None
            return
        call = self._under_way
        if call is None:
            raise Caught(f"{where}: acknowledged calls are missing\n" + "\n".join(differences(told, found)))
        with_it = await self._story_with(call, keep=settles)
        if found != with_it:
            raise Caught(f"{where}: {call.name} is there by half\n" + "\n".join(differences(with_it, found)))
        if settles:
            self._under_way = None
            self.tally.survived += 1
            if call in self._first:
                self._first.remove(call)

    async def _story(self) -> dict[str, Any]:
        """The model's story as of now, told once as long as nothing changes."""
        if self._told is None or self._told[0] != self._play.now:
            self._told = self._play.now, await story(self._model, now=self._play.now)
        return self._told[1]

    async def _story_with(self, call: Call, *, keep: bool) -> dict[str, Any]:
        """The model's story with one more call, which it keeps or has never heard of."""
        before = deepcopy(self._model.book) if not keep else None
        await _answer(call, self._model)
        told = await story(self._model, now=self._play.now)
        if before is not None:
            self._model.book = before
        else:
            self._told = self._play.now, told
        return told

    def _driver(self, disk: Disk, *, control: bool) -> DiskDriver:
        normal = control and self._control == "normal"
        return DiskDriver(
            disk, checkpoint_pages=self._checkpoint_pages, synchronous="normal" if normal else None
        )


async def _answer(call: Call, ledger: Any) -> Any:
    """What the call answers; a refusal that is part of the contract is an answer too."""
    try:
        return await call.on(ledger)
    except (Problem, NodeEvicted) as error:
        return type(error).__name__, getattr(error, "code", None)


def dict_of(disk: Disk) -> dict[str, bytes]:
    """The files as a process sees them that starts again on the same machine."""
    return {name: bytes(file.now) for name, file in disk.files.items()}


def campaign(*, points: int, seed: int = 0, control: Control = "none") -> tuple[Tally, list[tuple[int, str]]]:
    """Run worlds from `seed` on until so many points are seen; the tally, and seeds at which it was caught.

    A negative control stops at its first catch.
    """
    tally = Tally()
    caught: list[tuple[int, str]] = []
    with asyncio.Runner() as runner:
        while tally.points < points:
            world = World(seed, control=control)
            try:
                runner.run(world.run())
            except Exception as error:  # Caught, or an error that the ledger should have made its own
                caught.append((seed, str(error) if isinstance(error, Caught) else f"escaped: {error!r}"))
                tally.points += 1
                if control != "none":
                    return tally, caught
            tally.add(world.tally)
            seed += 1
    return tally, caught
