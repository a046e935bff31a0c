"""A server under attack: who suffers, who attacks, and how both are measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from typing import Any

from lab.bench import processes
from lab.bench.api import Api
from lab.bench.figures import Joined
from lab.bench.server import KEY
from lab.bench.stage import Setup, Sink, Stage, stage
from tests.e2e.calling import until
from tests.servers import folder

LOUD = "loud"  # the attacker's tenant
RATE, CONNECTIONS = 20.0, 4  # of the customer, in requests a second
CALM_S, ATTACKED_S = 4.0, 6.0
BEGIN_S = 1.0  # until an attack is in full swing
CALLERS = 8  # who make endpoints before an attack, since one call after another mostly waits
ARRIVE_S = 10.0  # for what was accepted last
MEMORY_MB = 400.0
FACTOR = 2.0
# Milliseconds are judged on a machine that does nothing else. Elsewhere, as in CI: memory, answers and arrivals alone.
TIMED = os.environ.get("TIMED", "1") != "0"
# Where they are judged, an attacker has of the cores what nobody else wants: what it does to the server counts. Beside other attacks
# and what else fills the cores that may be nothing, and an attack that starves proves nothing; but servers come first.
PRIORITY = 19 if TIMED else 10
# Alone, p95 is a few milliseconds; twice that is one turn of a scheduler whose two cores the attacker uses as well.
LEAST_MS = 15.0


class Arena:
    """A scene with the customer's endpoint, an attacker's tenant, and a receiver for what its endpoints get.

    ledger  its name
    tell    who is told the figures of each attack, before they are judged
    computing  true for one at a time: what such an attack makes of a server grows with the time it has on a core
    """

    def __init__(
        self, scene: Stage, *, ledger: str, tell: Callable[[dict[str, Any]], None], computing: bool
    ) -> None:
        self.scene = scene
        self.ledger = ledger
        self._tell = tell
        self._computing = computing
        self.api = scene.api
        self.loud: Sink = scene.another_sink()
        scene.endpoint("/ok", ["document.*"])
        self.api.tenant(LOUD)

    def loud_endpoints(self, path: str, number: int, policy: Any = None) -> None:
        """Endpoints of the attacker, each at a path of its own, that want all of its events."""

        def make(caller: int) -> None:
            with closing(Api(self.scene.server.port, KEY)) as api:
                for index in range(caller, number, CALLERS):
                    api.endpoint(LOUD, self.loud.url(f"{path}/{index}"), ["*"], policy)

        with ThreadPoolExecutor(CALLERS) as pool:
            list(pool.map(make, range(CALLERS)))

    def measure(self, seconds: float) -> dict[str, Any]:
        """What the customer sees within a window: figures in milliseconds, and answers by status."""
        sink = self.scene.sink
        sink.reset()
        sent = self.scene.load("document.signed", rate=RATE, connections=CONNECTIONS, seconds=seconds).wait()
        end = time.monotonic() + ARRIVE_S
        while sink.count().answered < sent.deliveries and time.monotonic() < end:
            time.sleep(0.05)
        joined = Joined([sent], sink.report())
        return {
            "publish_ms": joined.accept_ms(),
            "arrival_ms": joined.arrival_ms(),
            "statuses": sent.statuses,
            "unanswered": sent.unanswered,
            "missing": joined.lost,
        }

    def memory_mb(self) -> float:
        """The server's peak since the attack began."""
        return processes.memory_mb(self.scene.server.pid)[1]

    @contextmanager
    def attack(self, name: str, **how: Any) -> Iterator[None]:
        """One attacker's process."""
        processes.reset_peak(self.scene.server.pid)
        told = json.dumps({"port": self.scene.server.port, "key": KEY, "tenant": LOUD, **how})
        command = [sys.executable, "-m", "tests.adversary.attackers", name, told]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=processes.plain_environment(),
            preexec_fn=lambda: os.nice(PRIORITY),
        )
        with processes.ending(process):
            assert process.stdout is not None
            assert process.stdout.readline() == b"begun\n", "the attacker did not begin"
            time.sleep(BEGIN_S)
            yield
            assert process.poll() is None, f"the attacker ended by itself with status {process.returncode}"

    def withstands(self, name: str, **how: Any) -> dict[str, Any]:
        """Measure before and during an attack, and judge; the figures."""
        calm = self.measure(CALM_S)
        turn = folder.only_one("computing-attack") if self._computing else nullcontext()
        with turn, self.attack(name, **how):
            attacked = self.measure(ATTACKED_S)
        told = [f"{key}={value}" for key, value in how.items() if isinstance(value, int) or key == "path"]
        figures = {
            "attack": " ".join((name, *told)),
            "ledger": self.ledger,
            "memory_mb": self.memory_mb(),
            "calm": calm,
            "attacked": attacked,
        }
        print(json.dumps(figures))
        self._tell(figures)
        judge(figures, timed=TIMED)
        until(self.api.ready, "the server is ready after the attack", 15.0)
        return figures


def judge(figures: dict[str, Any], *, timed: bool) -> None:
    """Raise where the customer was hurt or the server grew; `timed`: or where the customer waited longer than before."""
    calm, attacked = figures["calm"], figures["attacked"]
    assert set(calm["statuses"]) == {"202"}, figures
    assert set(attacked["statuses"]) == {"202"} and not attacked["unanswered"], figures
    assert not attacked["missing"], figures
    assert figures["memory_mb"] <= MEMORY_MB, figures
    for what in ("publish_ms", "arrival_ms") if timed else ():
        bound = bound_ms(calm[what]["p95"])
        assert attacked[what]["p95"] <= bound, (what, bound, figures)


def bound_ms(calm_ms: float) -> float:
    """What p95 may be under attack, where it was so much before."""
    return max(FACTOR * calm_ms, LEAST_MS)


def table(all_figures: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What publishing took alone and beside each attack, p95 in milliseconds, and the server's peak of memory."""
    yield f"{'attack':<28}{'ledger':<10}{'alone':>8}{'beside':>9}{'ratio':>7}{'bound':>8}{'arrival':>9}{'memory':>9}"
    for figures in all_figures:
        calm, attacked = (figures[when]["publish_ms"]["p95"] for when in ("calm", "attacked"))
        bound, arrival = bound_ms(calm), figures["attacked"]["arrival_ms"]["p95"]
        yield (
            f"{figures['attack']:<28}{figures['ledger']:<10}{calm:>8.1f}{attacked:>9.1f}{attacked / calm:>7.2f}"
            f"{bound:>8.1f}{arrival:>9.1f}{figures['memory_mb']:>6.0f} MB{'' if attacked <= bound else '  over'}"
        )


@contextmanager
def arena(
    database_url: str | None, *, tell: Callable[[dict[str, Any]], None], computing: bool, **settings: str
) -> Iterator[Arena]:
    """A server on SQLite, or on the database given, ready to be attacked."""
    ledger = "sqlite" if database_url is None else "postgres"
    with stage(Setup(database_url=database_url, settings=settings)) as scene:
        yield Arena(scene, ledger=ledger, tell=tell, computing=computing)
