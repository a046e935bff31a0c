"""One seed, one world, one report."""

from __future__ import annotations

import logging
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from lab.sim import swarm
from lab.sim.loop import SimLoop, SimulationError
from lab.sim.loop import run as run_loop
from lab.sim.parts import MemoryShelf, SqliteShelf, assemble
from lab.sim.world import Finding, World

Storage = Literal["memory", "sqlite"]
TAIL_LINES = 60  # of a failing run's story, for people


class Report(Struct):
    """Result of a seed. `finding` None: everything held. The same seed gives the same `digest`."""

    seed: int | str
    ledger: str
    finding: str | None
    digest: str
    steps: int
    virtual_s: float
    events: int
    deliveries: int
    requests: int
    ends: dict[str, int]
    faults: tuple[str, ...]
    counts: dict[str, int]
    tail: list[str]
    inbox: bool = False
    applied: int = 0  # effects of the receiver's handlers

    @property
    def replay(self) -> str:
        """The one line that shows this run again."""
        if self.inbox:
            return f"python -m lab sim --seed {self.seed} --inbox --trace"
        return f"python -m lab sim --seed {self.seed} --ledger {self.ledger} --trace"


def run(
    seed: int | str,
    *,
    ledger: Storage = "memory",
    nodes: int = 1,
    broker: bool = False,
    inbox: bool = False,
    options: swarm.Options | None = None,
    tail: int = TAIL_LINES,
) -> Report:
    """Run the world of `seed` to its end. Never raises for what it finds: the report says it.

    nodes    how many processes may share the ledger at most (memory ledger only; SQLite serves one)
    broker   ready work goes through a broker, which is in trouble as well (memory ledger only)
    inbox    the receiver is an application with an inbox, which is in trouble as well (memory ledger only)
    options  a world of one's own instead of the drawn one
    tail     how many of the last lines of its story are kept
    """
    if inbox:
        return quietly(lambda: _both_halves(seed, tail))
    if options is None:
        options = swarm.draw(seed, nodes=nodes if ledger == "memory" else 1)
        if ledger == "sqlite":
            options.unknown_share = 0.0  # a commit in the own process has an outcome
    if broker and ledger == "memory":
        options.broker = swarm.draw_broker(options.seed, options.storm_s)
    return quietly(lambda: _on_ledger(options, ledger, tail))


def quietly(play: Callable[[], Report]) -> Report:
    """Without what the server would log: the trace has it."""
    level = logging.getLogger("surehook").level
    logging.getLogger("surehook").setLevel(logging.CRITICAL)
    try:
        return play()
    finally:
        logging.getLogger("surehook").setLevel(level)


def _on_ledger(options: swarm.Options, ledger: Storage, tail: int) -> Report:
    if ledger == "memory":
        return _run(options, ledger, MemoryShelf().open, tail)
    with tempfile.TemporaryDirectory(prefix="surehook-sim-", dir=_quick_folder()) as folder:
        return _run(options, ledger, SqliteShelf(Path(folder)).open, tail)


def _both_halves(seed: int | str, tail: int) -> Report:
    from lab.sim.inbox.draw import draw  # SQLAlchemy is loaded only by worlds that have an inbox
    from lab.sim.inbox.world import InboxWorld

    options, plan = draw(seed)
    loop = SimLoop(seed)
    world = InboxWorld(options, plan, loop, open_ledger=MemoryShelf().open, assemble=assemble)
    report = _play(world, loop, "memory", tail)
    report.inbox, report.applied = True, world.applied
    report.faults += tuple(f"inbox-{fault}" for fault in plan.faults)
    return report


def _quick_folder() -> str | None:
    """A folder in memory where there is one: no world loses power here, so no sync has to reach a disk."""
    shared = Path("/dev/shm")  # noqa: S108 - only ever used through TemporaryDirectory
    return str(shared) if shared.is_dir() and os.access(shared, os.W_OK) else None


def _run(options: swarm.Options, ledger: str, open_ledger: object, tail: int) -> Report:
    loop = SimLoop(options.seed)
    world = World(options, loop, open_ledger=open_ledger, assemble=assemble)  # type: ignore[arg-type]
    return _play(world, loop, ledger, tail)


def _play(world: World, loop: SimLoop, ledger: str, tail: int) -> Report:
    options = world.options
    finding: str | None = None
    try:
        run_loop(world.run(), loop=loop)
    except Finding as found:
        finding = str(found)
    except SimulationError as error:
        finding = f"{type(error).__name__}: {error}"
    return Report(
        seed=options.seed,
        ledger=ledger,
        finding=finding,
        digest=world.trace.digest,
        steps=loop.steps,
        virtual_s=round(loop.time() - world.began, 3),
        events=len(world.book.events),
        deliveries=len(world.book.rows),
        requests=sum(len(receiver.seen) for receiver in world.receivers),
        ends=dict(Counter(row.state for row in world.book.rows.values())),
        faults=options.faults,
        counts=dict(sorted(world.trace.counts.items())),
        tail=list(world.trace.lines)[-tail:] if tail else [],
    )
