"""Nodes of the product die, stay dead, come back, and stand still for a while."""

from __future__ import annotations

import random
import time
from typing import Any

from tests.e2e.faults.fleet import LARGE, PER_NODE, Run, private, running, uptime
from tests.e2e.faults.judging import Hit
from tests.e2e.faults.machines import DATABASE, ledger
from tests.e2e.faults.place import Place

RESCUED_S = 16.0  # the work of a node that is silent has been taken over by then
SEEN_S = 3.0  # … and of one whose process others can see to be gone, since they run on its machine
AGAIN_S = 3.0  # the work of a node that is started again goes on so long after its start
ROOM = 2.0  # what a single one may exceed these by; a campaign's p99 may not
KILLS = {False: 4, True: 10}  # in one round
FROZEN_S = {False: 20.0, True: 60.0}  # longer than a lease, of 15 s, in the short form too


def node_kill(place: Place) -> dict[str, Any]:
    """Any of three workers and two API processes is killed, ten times a round; nothing is lost, and the rest goes on."""
    kills = KILLS[place.long]
    ready: list[float] = []
    with private(ledger) as server, running(LARGE, server.url(DATABASE)) as run:
        for _ in range(place.rounds):
            ready += kill_nodes(run, place.dice, kills, stays_dead=place.dice.randrange(kills))
        figures = {**run.end(per_fault=PER_NODE).figures, "kills": kills * place.rounds, "ready_s": ready}
    judge_waits(figures)
    return figures


def kill_nodes(run: Run, dice: random.Random, kills: int, *, stays_dead: int | None = None) -> list[float]:
    """Kill any node and start it again, so often; at the kill numbered `stays_dead` a worker has to be done without.

    How long each took from its start until it was ready, of which most is Python's.
    """
    ready: list[float] = []
    for number in range(kills):
        uptime(dice, 0.3, 1.2)
        if number == stays_dead:
            victim = dice.choice(run.fleet.workers)
            at = victim.kill()
            # A start would evict the dead node at once, and nothing else tells of a rescue.
            time.sleep(2 * SEEN_S)
            run.hits.append(Hit(at, at, at, "seen"))
            victim.start()
        else:
            victim = dice.choice(list(run.fleet.nodes.values()))
            at = victim.kill()
            victim.start()
            run.hits.append(Hit(at, at, victim.started_ns, "again"))
        ready.append(round(victim.wait_ready(), 2))
        run.sends_after(victim.started_ns)
    uptime(dice)
    return ready


def judge_waits(figures: dict[str, Any]) -> None:
    """No single wait may be far beyond what 99 of a hundred must keep."""
    for name, limit in (("rescued_s", RESCUED_S), ("seen_s", SEEN_S), ("again_s", AGAIN_S)):
        longest = max(figures.get(name, [0.0]))
        assert longest <= limit * ROOM, f"{name}: {longest} s, of {limit} s; {figures}"


def node_freeze(place: Place) -> dict[str, Any]:
    """A worker stands still past its lease and goes on: it sends nothing that somebody else has taken over."""
    frozen = FROZEN_S[place.long]
    with private(ledger) as server, running(LARGE, server.url(DATABASE)) as run:
        for _ in range(place.rounds):
            freeze_worker(run, place.dice, frozen)
        figures = run.end(per_fault=PER_NODE).figures
    judge_waits(figures)
    return {**figures, "frozen_s": frozen}


def freeze_worker(run: Run, dice: random.Random, seconds: float) -> None:
    """Let a worker stand still for so long, and go on for a while."""
    uptime(dice)
    victim = dice.choice(run.fleet.workers)
    at = run.fleet.freeze(victim)
    time.sleep(seconds)  # real time passes for a frozen process, and nothing else shows what it does then
    run.hits.append(Hit(at, at, at, "rescued"))
    woken = run.fleet.thaw(victim)
    victim.wait_ready()
    run.sends_after(woken)
    uptime(dice, 2.0, 4.0)
    assert victim.alive()
