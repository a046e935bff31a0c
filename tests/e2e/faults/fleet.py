"""Several nodes of the product on one ledger, a receiver, and a load on every API.

Folders lie below the run's own, so that the servers' watchdog also sweeps nodes whose campaign was killed.
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from lab.bench.records import Plan
from lab.bench.server import KEY, Launch, Server, product_command
from lab.bench.stage import TENANT, Load, Sink, receiver
from tests import servers
from tests.e2e.calling import Caller, event_id, until
from tests.e2e.faults.judging import Hit, Verdict, judge
from tests.e2e.faults.place import Impossible

PATHS = ("/ok", "/d/50")  # one answers at once, one keeps a dozen requests in flight at any moment
TYPE = "document.signed"
RATE = 150.0  # events/s on each API; twice as many deliveries
CONNECTIONS = 12
LOAD_S = 900.0  # a load that nobody stops ends by itself
PATIENCE_S = 60.0  # the load's last answers
# No arrival for so long with something missing: a rescue takes 16 s, so the rest is not coming.
STILL_S = 30.0
SENDING_S = 30.0  # a fleet that sends nothing for so long has failed
TAIL = 600  # characters of a log
GREETING = (
    "surehook listens on ",
    "  ledger ",
    "  broker ",
    "  role ",
    "  redis ",
    "  API ",
    "  metrics ",
    "  ON ",
)
LINES_MOST = 2_000  # of one node's log in a run: faults are told of, and nothing is told again and again
AWAY_S = 10.0  # an API without its ledger has said so by then
PER_NODE = 1024 + 512  # requests in flight in both lanes, and one record window: what one node may repeat
SMALL = ("api", "api", "worker", "worker")
LARGE = ("api", "api", "worker", "worker", "worker")
LANES = ("api", "api", "worker:first", "worker:first", "worker:retry")


class Fleet:
    """Nodes by name (`api1`, `worker3`), each a process that can be killed, frozen and started again.

    A role is `all`, `api`, `worker`, `worker:first` or `worker:retry`. `url` None is a SQLite file, for one node.
    """

    def __init__(
        self,
        folder: Path,
        roles: tuple[str, ...],
        url: str | None,
        settings: dict[str, str],
    ) -> None:
        self.folder = folder
        self.nodes: dict[str, Server] = {}
        for number, role in enumerate(roles, 1):
            kind, _, lane = role.partition(":")
            name = f"{kind}{number}"
            (folder / name).mkdir()
            command = product_command()
            if kind != "all":
                command = (*command, "--role", kind, *(("--lane", lane) if lane else ()))
            self.nodes[name] = Server(
                Launch(folder=folder / name, command=command, database_url=url, settings=settings)
            )
        self.apis = [node for name, node in self.nodes.items() if not name.startswith("worker")]
        self.workers = [node for name, node in self.nodes.items() if not name.startswith("api")]

    def start(self) -> None:
        """Start all nodes; the first one alone, since it makes the schema."""
        first, *others = self.nodes.values()
        first.start()
        first.wait_ready()
        for node in others:
            node.start()
        for node in others:
            node.wait_ready()

    def ended(self) -> str:
        """Which nodes have ended by themselves, with the ends of their logs."""
        tails = {
            name: node.log.read_text(errors="replace")[-TAIL:]
            for name, node in self.nodes.items()
            if not node.alive()
        }
        return "\n".join(f"{name} has ended: …{tail}" for name, tail in tails.items()) or "all nodes run"

    def undated(self) -> list[str]:
        """Lines of the nodes' logs that are no log lines, but for what greets who starts one; with too many lines, those
        last ones."""
        found = []
        for name, node in self.nodes.items():
            lines = node.log.read_text(errors="replace").splitlines()
            strange = [line for line in lines if not line.startswith(("{", *GREETING))]
            found += [f"{name}: {line}" for line in strange or lines[LINES_MOST:]]
        return found

    def freeze(self, node: Server) -> int:
        """SIGSTOP for all its processes; the instant just before."""
        at = time.monotonic_ns()
        os.killpg(node.pid, signal.SIGSTOP)
        return at

    def thaw(self, node: Server) -> int:
        """SIGCONT; the instant just before."""
        at = time.monotonic_ns()
        os.killpg(node.pid, signal.SIGCONT)
        return at

    def close(self) -> None:
        """Stop all nodes."""
        for node in self.nodes.values():
            if node.alive():
                self.thaw(node)
        for node in self.nodes.values():
            node.stop()


class Run:
    """A fleet under load, and the book of what was done to it."""

    def __init__(self, fleet: Fleet, sink: Sink, stack: ExitStack) -> None:
        self.fleet = fleet
        self.sink = sink
        self.hits: list[Hit] = []
        self.away: list[tuple[int, int]] = []  # from when until when there was no ledger
        api = fleet.apis[0].api
        api.tenant(TENANT)
        for path in PATHS:
            api.endpoint(TENANT, sink.url(path), ["*"])
        self._loads = [self._load(node.port, stack) for node in fleet.apis]
        self.sends_after(time.monotonic_ns())

    def _load(self, port: int, stack: ExitStack) -> Load:
        load = Load(Plan(
            port=port, key=KEY, tenant=TENANT, types=(TYPE,), rate=RATE, connections=CONNECTIONS, seconds=LOAD_S,
            own_ids=True, insist=True, patience_s=PATIENCE_S,
        ))  # fmt: skip
        stack.callback(load.abandon)
        return load

    def sends_after(self, since_ns: int, seconds: float = SENDING_S) -> float:
        """Wait for a request made after an instant; the seconds between the two."""
        until(
            lambda: self.sink.count().last_ns > since_ns,
            lambda: f"the fleet sends; {self.fleet.ended()}",
            seconds,
        )
        return (self.sink.count().last_ns - since_ns) / 1e9

    def refused_without_ledger(self) -> float:
        """Every API answers 503 with `Retry-After`; the seconds that the slowest took."""
        slowest = 0.0
        for node in self.fleet.apis:
            caller = Caller(node.port, KEY)
            began = time.monotonic()
            event = {"tenant": TENANT, "type": TYPE, "id": event_id(time.time()), "data": {}}
            answer = caller.ask("POST", "/v1/events", event)
            slowest = max(slowest, time.monotonic() - began)
            caller.close()
            assert answer.status == 503, answer
            assert "retry-after" in answer.headers, answer.headers
        assert slowest <= AWAY_S, f"{slowest:.1f} s until an API without a ledger said so"
        return slowest

    def end(self, *, per_fault: int, still_s: float = STILL_S) -> Verdict:
        """Stop the load, wait until all has arrived, and judge. AssertionError with what did not hold."""
        sents = [load.stop() for load in self._loads]
        self._drain(sum(sent.deliveries for sent in sents), still_s)
        verdict = judge(
            self.hits, sents, self.sink.report(), endpoints=len(PATHS), bound=per_fault, away=self.away
        )
        if not all(node.alive() for node in self.fleet.nodes.values()):
            verdict.defects.append(self.fleet.ended())
        if undated := self.fleet.undated():
            verdict.defects.append(
                f"{len(undated)} lines of log are undated or too many, first {undated[:3]}"
            )
        left = self._left()
        if any(left.values()):
            verdict.defects.append(f"the lanes still hold {left}")
        assert not verdict.defects, "; ".join(verdict.defects)
        return verdict

    def _left(self) -> dict[str, int]:
        lanes = self.fleet.apis[0].api.lanes()
        return {
            name: sum(int(lane[name]) for lane in lanes) for name in ("ready", "held", "scheduled", "parked")
        }

    def _drain(self, expected: int, still_s: float) -> None:
        """Wait until everything has arrived and is recorded, or nothing moves any more."""
        moved, before = time.monotonic(), (-1, -1)
        while time.monotonic() - moved < still_s:
            answered, left = self.sink.count().answered, sum(self._left().values())
            if answered >= expected and left == 0:
                return
            if (answered, left) != before:
                moved, before = time.monotonic(), (answered, left)
            time.sleep(0.1)


@contextmanager
def running(roles: tuple[str, ...], url: str | None, **settings: str) -> Iterator[Run]:
    """A fleet under load; everything is gone afterwards but the logs, which the run's end keeps when it failed."""
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="fleet-", dir=servers.run_folder()))
        sink = stack.enter_context(receiver())
        fleet = Fleet(folder, roles, url, settings)
        stack.callback(fleet.close)
        fleet.start()
        yield Run(fleet, sink, stack)


class Closing(Protocol):
    """A server that can be closed."""

    def close(self) -> None:
        """End it."""


S = TypeVar("S", bound=Closing)


@contextmanager
def private(new: Callable[[], S]) -> Iterator[S]:
    """A server for one run; Impossible where it is not installed."""
    try:
        made = new()
    except servers.Missing as why:
        raise Impossible(str(why)) from None
    with closing(made):
        yield made


def uptime(dice: random.Random, low: float = 0.4, high: float = 1.5) -> None:
    """Let the load go on for a moment that the seed draws."""
    time.sleep(dice.uniform(low, high))
