"""Nodes of two versions on one ledger, the receivers, and what the nodes wrote in their logs: for `upgrade.py`."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from lab.bench.api import Api
from lab.bench.fill import FUTURE_POLICY
from lab.bench.records import Plan
from lab.bench.server import KEY, Launch, Server
from lab.bench.stage import TENANT, BenchFailed, Load, Sink
from surehook.host.ports import free_port
from tests.e2e.faults.fleet import GREETING
from tests.servers import run_folder

SLOW_MS = 1500  # below the patience of a first attempt
RETRY: dict[str, object] = {**FUTURE_POLICY, "schedule": {"fixed": [3, 3, 3]}}
ONE_CALL: dict[str, object] = {**FUTURE_POLICY, "auto_retry": False}
# Event types of the fill: one event in two hundred for each endpoint at which something stays.
FILL = (*(["filled"] * 196), "refused", "paused", "later", "gone")
ENDING = ("live.plain", "live.slow", "live.retried")  # their deliveries have all ended when a run has settled
LIVE = (*(["live.plain"] * 12), *ENDING[1:], "live.refused", "live.paused", "live.gone")
LOOK_S = 0.2
LEVELS = ("error", "critical")
WORDS_MOST = 30  # characters of a warning that name it


class Node:
    """A process of the product, of either version."""

    def __init__(self, name: str, program: Path, url: str, stack: ExitStack, *words: str) -> None:
        self.name = name
        folder = Path(tempfile.mkdtemp(prefix="upgrade-", dir=run_folder()))
        launch = Launch(folder=folder, command=(str(program), "serve", *words), database_url=url)
        self.server = Server(launch)
        self.status: int | None = None
        stack.callback(self.server.stop)

    def start(self) -> float:
        """Start it; the seconds until it is ready."""
        self.server.start()
        return self.server.wait_ready()

    def stop(self) -> float:
        """Stop it by SIGTERM; the seconds it took. Its status is 0 where it ended by itself in time."""
        took = self.server.stop()
        self.status = self.server.process.returncode if self.server.process is not None else None
        return took

    def told(self) -> tuple[list[str], Counter[str]]:
        """Return lines of its log that tell of a failure (errors, traces, what is no log line), and its warnings."""
        bad, warnings = [], Counter[str]()
        for line in self.server.log.read_text(errors="replace").splitlines():
            if line.startswith(GREETING):
                continue
            entry = json.loads(line) if line.startswith("{") else {"level": "error"}
            if entry["level"] in LEVELS:
                bad.append(f"{self.name}: {line}")
            elif entry["level"] == "warning":
                warnings[f"{self.name}: {entry['event'][:WORDS_MOST]}"] += 1
        return bad, warnings


def endpoints(api: Api, healthy: Sink, others: Sink) -> None:
    """Create the tenant and its endpoints: one that is judged, one for the fill, and those at which something stays."""
    api.tenant(TENANT)
    api.endpoint(TENANT, healthy.url("/ok"), ["live.*"])
    api.endpoint(TENANT, others.url("/ok/filled"), ["filled"])
    api.endpoint(TENANT, others.url(f"/d/{SLOW_MS}"), ["live.slow"])
    api.endpoint(TENANT, others.url("/once/500"), ["live.retried"], RETRY)
    api.endpoint(TENANT, f"http://127.0.0.1:{free_port()}/", ["refused", "live.refused"])
    api.endpoint(TENANT, others.url("/status/500/later"), ["later"], FUTURE_POLICY)
    api.endpoint(TENANT, others.url("/status/500/gone"), ["gone", "live.gone"], ONE_CALL)
    paused = api.endpoint(TENANT, others.url("/ok/paused"), ["paused", "live.paused"])
    api.set_status(paused, "paused")


def load(port: int, types: tuple[str, ...], stack: ExitStack, **plan: object) -> Load:
    """Start a generator."""
    made = Load(Plan(port=port, key=KEY, tenant=TENANT, types=types, **plan))  # type: ignore[arg-type]
    stack.callback(made.abandon)
    return made


def pending(api: Api) -> int:
    """Count deliveries that are due or in some process's memory."""
    return sum(int(lane["ready"]) + int(lane["held"]) for lane in api.lanes())


def calm(api: Api, sink: Sink, expected: int, still_s: float) -> None:
    """Wait until so many deliveries were answered at the sink and none is pending.

    Raises BenchFailed where nothing has moved for `still_s`.
    """
    moved, before = time.monotonic(), (-1, -1)
    while True:
        now = (sink.count().answered, pending(api))
        if now[0] >= expected and now[1] == 0:
            return
        if now != before:
            moved, before = time.monotonic(), now
        if time.monotonic() - moved > still_s:
            raise BenchFailed(f"{now[0]:,} of {expected:,} deliveries arrived, and {now[1]:,} are pending")
        time.sleep(LOOK_S)
