"""The course of an upgrade: fill, load, one version after the other, rest. For `upgrade.py`."""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from lab.bench.processes import plain_environment
from lab.bench.records import Sent
from lab.bench.server import product_command
from lab.bench.stage import BenchFailed, Load, receiver
from lab.bench.upgrade_ledger import LEDGERS, Ledger, Rows, read, unfinished
from lab.bench.upgrade_nodes import ENDING, FILL, LIVE, Node, calm, endpoints, load
from tests.servers import CuttingProxy

CONNECTIONS = 16
FILL_BATCH, FILL_CONNECTIONS, FILL_S = 500, 4, 3600.0
BEFORE_S = 10.0  # of load on the old version alone
BETWEEN_S = 5.0  # between the ends of two old nodes
LOAD_S = 3600.0  # a load that nobody stops ends by itself
BEHIND = 7  # status of `surehook migrate status` where there is something to migrate
STILL_S = 120.0  # a receiver that refuses is probed again within less
Told = dict[str, object]


class Upgrade:
    """One upgrade of one ledger."""

    def __init__(self, chosen: argparse.Namespace, kind: str, stack: ExitStack) -> None:
        self.chosen, self.kind, self.stack = chosen, kind, stack
        self.ledger: Ledger = LEDGERS[kind](stack)
        self.healthy, self.others = (stack.enter_context(receiver()) for _ in range(2))
        self.new_program = Path(product_command()[0])
        old = Path(chosen.old).resolve() / ".venv" / "bin" / "surehook"
        self.old, self.new = self._nodes("old", old), self._nodes("new", self.new_program)
        # Publishers know one address, behind which the old API is, and after it the new one.
        self.door = stack.enter_context(CuttingProxy(self.old[0].server.port, self.new[0].server.port))
        self.loads: list[Load] = []
        self.said: Told = {"ledger": kind, "events": chosen.events, "rate": chosen.rate}

    def _nodes(self, name: str, program: Path) -> list[Node]:
        roles = ("all",) if self.kind == "sqlite" else ("api", "worker")
        return [
            Node(f"{name} {role}", program, self.ledger.url, self.stack, "--role", role) for role in roles
        ]

    def say(self, text: str) -> None:
        """Progress."""
        print(f"{self.kind}: {text}", file=sys.stderr, flush=True)

    def fill(self) -> Rows:
        """Start the old version, let it make the past, and read its rows."""
        began = time.monotonic()
        for node in self.old:
            node.start()
        api, total = self.old[0].server.api, self.chosen.events
        endpoints(api, self.healthy, self.others)
        self.say(f"the old version accepts {total:,} events")
        sent = load(
            self.old[0].server.port, FILL, self.stack, mode="batch", batch=FILL_BATCH, events=total,
            connections=FILL_CONNECTIONS, seconds=FILL_S,
        ).wait()  # fmt: skip
        if sent.deliveries < total:
            raise BenchFailed(f"only {sent.deliveries:,} of {total:,} accepted: {sent.statuses}")
        accepted_s = round(time.monotonic() - began, 1)
        calm(api, self.others, sum(FILL[number % len(FILL)] == "filled" for number in range(total)), STILL_S)
        self.others.reset()
        self.said["fill_s"] = {"accepted": accepted_s, "settled": round(time.monotonic() - began, 1)}
        self.say(f"filled: {self.said['fill_s']}")
        return read(self.ledger)

    def publish(self, port: int, rate: float) -> None:
        """Begin to publish until `settle`."""
        self.loads.append(load(
            port, LIVE, self.stack, rate=rate, connections=CONNECTIONS, seconds=LOAD_S, own_ids=True, insist=True,
            patience_s=STILL_S,
        ))  # fmt: skip

    def migrate(self) -> None:
        """Run the new version's migrations."""
        began = time.monotonic()
        done = self._migrate("up")
        if done.returncode:
            raise BenchFailed(f"migrate ended with {done.returncode}: {done.stderr[-2000:]}")
        told = json.loads(done.stdout)
        self.said["migrate_s"] = round(time.monotonic() - began, 2)
        self.said["revision"] = f"{told['was']} to {told['revision']}"

    def _migrate(self, what: str) -> subprocess.CompletedProcess[str]:
        words = [str(self.new_program), "migrate", what, "--database-url", self.ledger.url, "--json"]
        return subprocess.run(words, env=plain_environment(), capture_output=True, text=True, check=False)

    def take_over(self) -> None:
        """Replace the old nodes by the new ones under load."""
        behind = self._migrate("status").returncode == BEHIND
        self.publish(self.door.port, self.chosen.rate)
        time.sleep(BEFORE_S)
        if self.kind == "sqlite":
            self._replace(behind)
        else:
            self._replace_beside()
        self.say(f"the old version has stopped: {self.said['stopped_s']}")
        time.sleep(self.chosen.after)

    def _replace(self, behind: bool) -> None:
        """Stop the old server, migrate where there is something to migrate, and start the new one."""
        self.said["stopped_s"] = {node.name: round(node.stop(), 2) for node in self.old}
        if behind:
            self.migrate()
        self.said["ready_s"] = {node.name: round(node.start(), 2) for node in self.new}

    def _replace_beside(self) -> None:
        """Migrate and start the new nodes beside the old ones, then stop those."""
        self.migrate()
        self.said["ready_s"] = {node.name: round(node.start(), 2) for node in self.new}
        self.publish(self.new[0].server.port, self.chosen.rate / 2)
        self.say("old and new nodes side by side")
        time.sleep(self.chosen.beside)
        stopped: Told = {}
        for node in reversed(self.old):
            stopped[node.name] = round(node.stop(), 2)
            time.sleep(BETWEEN_S)
        self.said["stopped_s"] = stopped

    def settle(self) -> list[Sent]:
        """End the load, and wait until nothing moves but what cannot."""
        sents = [each.stop() for each in self.loads]
        began = time.monotonic()
        api = self.new[0].server.api
        calm(api, self.healthy, sum(len(sent.rows()[0]) for sent in sents), STILL_S)
        while unfinished(self.ledger, ENDING) and time.monotonic() - began < STILL_S:
            time.sleep(1.0)
        self.said["settled_s"] = round(time.monotonic() - began, 1)
        for node in self.new:
            node.stop()
        return sents
