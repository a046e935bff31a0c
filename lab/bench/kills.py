"""`kill9`: the server is killed again and again under load and started on the same ledger.

The publisher makes its own event ids and posts what got no 202 again until it gets one, as a careful
publisher does; so events that were on disk without an answer are told apart from new ones by the server alone.

    python -m lab bench kill9 --kills 100
"""

from __future__ import annotations

import random
import time
from typing import Any

from lab.bench.interruptions import Kill, account, passed
from lab.bench.records import Sent
from lab.bench.stage import BenchFailed, Load, Setup, Stage, stage

KILLS = 100
RATE = 1000.0  # events/s; what piles up while the server is away follows in a burst
CONNECTIONS = 32
PATHS = ("/ok", "/d/10")  # one answers at once, one keeps some ten requests in flight at any moment
UPTIME_S = (0.3, 1.2)  # between the first sending after a start and the next kill, drawn evenly
RECOVERY_S = 30.0  # a server that sends nothing for so long after a start has failed
WINDOW_ROWS = 500  # rows of one record transaction, the unrecorded part of what was sent


def run(
    setup: Setup, kills: int = KILLS, rate: float = RATE, window_rows: int = WINDOW_ROWS, seed: int = 1
) -> list[dict[str, Any]]:
    """One document about the whole campaign, as a list of one."""
    dice = random.Random(seed)  # moments of the kills, the same for a seed
    with stage(setup) as scene:
        for path in PATHS:
            scene.endpoint(path, ["*"])
        slots = sum(int(lane["slots"]) for lane in scene.api.lanes())
        longest = kills * (UPTIME_S[1] + RECOVERY_S) + 60
        load = scene.load(
            "document.signed",
            rate=rate,
            connections=CONNECTIONS,
            seconds=longest,
            own_ids=True,
            insist=True,
            patience_s=60.0,
        )
        _until_sending(scene, time.monotonic_ns())
        done = [_kill(scene, dice, number, kills) for number in range(kills)]
        time.sleep(UPTIME_S[1])
        sent = _end(scene, load)
        arrivals = scene.sink.report()
    result = account(done, sent, arrivals, bound=slots + window_rows)
    result["rate"] = rate
    result["passed"] = passed(result)
    return [result]


def _kill(scene: Stage, dice: random.Random, number: int, of: int) -> Kill:
    time.sleep(dice.uniform(*UPTIME_S))
    in_flight = sum(int(lane["in_flight"]) for lane in scene.api.lanes())
    killed = scene.server.kill()
    _until_read(scene)
    scene.server.start()
    started = scene.server.started_ns
    ready_s = scene.server.wait_ready()
    _until_sending(scene, started)
    scene.say.tick(f"kill {number + 1} of {of}: ready after {ready_s:.2f} s, {in_flight} were in flight")
    return Kill(killed_ns=killed, started_ns=started, ready_s=ready_s, in_flight=in_flight)


def _until_read(scene: Stage) -> None:
    """Wait for the sink to read what the dead process sent, so that its arrivals stand before the new start.

    A sink that got no CPU meanwhile would read them after it, and their repeats would have no kill to explain them.
    """
    until = time.monotonic() + RECOVERY_S
    while scene.sink.count().connections > 1:
        if time.monotonic() > until:
            raise BenchFailed(f"connections of a killed server were open {RECOVERY_S:.0f} s after it")
        time.sleep(0.01)


def _until_sending(scene: Stage, since_ns: int) -> None:
    until = time.monotonic() + RECOVERY_S
    while scene.sink.count().last_ns < since_ns:
        if time.monotonic() > until:
            raise BenchFailed(f"nothing was sent within {RECOVERY_S:.0f} s of a start")
        time.sleep(0.01)


def _end(scene: Stage, load: Load) -> Sent:
    scene.say.step("kill9: stopping the load, waiting for the rest")
    sent = load.stop()
    scene.drain(sent.deliveries)
    return sent
