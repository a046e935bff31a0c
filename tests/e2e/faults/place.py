"""Where a fault happens, and the load that goes on meanwhile."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.bench.processes import plain_environment
from lab.bench.server import KEY, product_command
from tests.e2e.calling import Caller, event_id, until
from tests.e2e.receivers import Spot
from tests.e2e.shop import FINISHED, Shop

COMMAND_S = 15.0  # a command that has not ended by then hangs
SETTLE_S = 30.0  # everything accepted has ended by then


class Impossible(Exception):
    """The fault cannot be made on this machine; the text says why."""


@dataclass
class Place:
    """One play of one fault: an empty folder, a seed, whether there is time for the long form, and how many rounds are
    played in one fleet, one after another."""

    folder: Path
    seed: int = 1
    long: bool = False
    rounds: int = 1
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)

    @contextmanager
    def shop(
        self, command: tuple[str, ...] = (), *, folder: Path | None = None, **settings: str
    ) -> Iterator[Shop]:
        """A running server; it and its receiver are gone afterwards."""
        shop = Shop(folder or self.folder, command, **settings)
        try:
            shop.start()
            yield shop
        finally:
            shop.close()


Fault = Callable[[Place], dict[str, Any]]


class Publisher:
    """Threads that publish with ids of their own and post again what got no 202, as careful publishers do."""

    def __init__(self, shop: Shop, tenant: str, *, threads: int = 3, pause_s: float = 0.005) -> None:
        self.accepted: dict[str, float] = {}  # event id to the instant of its 202
        self.statuses: Counter[int | str] = Counter()
        self.retry_after: set[str | None] = set()  # of every 503
        self.bodies: set[bytes] = set()  # of answers that are neither 202 nor 503
        self.broken: list[BaseException] = []  # what ended a thread
        self._shop, self._tenant, self._pause_s = shop, tenant, pause_s
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(n,), daemon=True) for n in range(threads)]

    def _run(self, number: int) -> None:
        try:
            self._publish(number)
        except BaseException as error:
            self.broken.append(error)
            raise

    def _publish(self, number: int) -> None:
        caller = Caller(self._shop.server.port, KEY)
        low = number << 40
        while not self._stop.is_set():
            low += 1
            event = {
                "tenant": self._tenant, "type": "document.signed", "id": event_id(time.time(), low), "data": {"n": low},
            }  # fmt: skip
            while not self._offer(caller, event) and not self._stop.is_set():
                time.sleep(0.02)
            time.sleep(self._pause_s)
        caller.close()

    def _offer(self, caller: Caller, event: dict[str, Any]) -> bool:
        try:
            answer = caller.ask("POST", "/v1/events", event)
        except OSError:
            self.statuses["no answer"] += 1
            return False
        self.statuses[answer.status] += 1
        if answer.status == 202:
            assert answer.json["id"] == event["id"]
            self.accepted[event["id"]] = time.monotonic()
            return True
        if answer.status == 503:
            self.retry_after.add(answer.headers.get("retry-after"))
        else:
            self.bodies.add(answer.body)
        return False

    def __enter__(self) -> Publisher:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        assert not self.broken, self.broken

    def stop(self) -> None:
        """Publish nothing more."""
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def until(self, number: int, seconds: float = 20.0) -> None:
        """Wait for this many more accepted events."""
        goal = len(self.accepted) + number
        until(lambda: len(self.accepted) >= goal, lambda: f"{number} more events: {self}", seconds)

    def refused(self, number: int, seconds: float = 20.0) -> None:
        """Wait for this many answers 503 in all."""
        until(lambda: self.statuses[503] >= number, lambda: f"{number} refusals: {self}", seconds)

    def __repr__(self) -> str:
        alive = sum(thread.is_alive() for thread in self._threads)
        return f"{dict(self.statuses)}, {alive} threads, log: {self._shop.log[-1500:]}"


def settle(shop: Shop, tenant: str, seconds: float = SETTLE_S) -> dict[str, Any]:
    """Wait until every delivery of a tenant has ended; all of them by event."""

    def look() -> dict[str, Any] | None:
        for state in ("scheduled", "sending", "retrying", "parked"):
            if shop.api.get("/v1/deliveries", tenant=tenant, state=state, limit=1)["data"]:
                return None
        rows = {row["event"]: row for row in shop.api.pages("/v1/deliveries", tenant=tenant, limit=200)}
        # Some moved meanwhile.
        return rows if all(row["state"] in FINISHED for row in rows.values()) else None

    return until(look, "all deliveries ended", seconds) or {}


def account(shop: Shop, tenant: str, publisher: Publisher, spot: Spot) -> dict[str, Any]:
    """Judge a run with one endpoint that answers 200: nothing accepted is lost, no request is missing in the books.

    Returns how many events there were and how many requests came to a delivery that had already been answered.
    """
    assert not publisher.bodies, publisher.bodies
    rows = settle(shop, tenant)
    lost = publisher.accepted.keys() - rows.keys()
    assert not lost, f"{len(lost)} accepted events are not in the ledger, such as {sorted(lost)[:3]}"
    requests = Counter(seen["webhook-id"] for seen in list(spot.seen))
    unsent = rows.keys() - requests.keys()
    assert not unsent, f"{len(unsent)} deliveries ended without a request"
    assert requests.keys() <= rows.keys(), "a request for an event that is not in the ledger"
    for event in (event for event, count in requests.items() if count > 1):
        history = [
            row for row in shop.attempts(rows[event]["id"]) if row["kind"] in ("attempt", "interrupted")
        ]
        assert len(history) >= requests[event], (
            f"{event}: {requests[event]} requests, {len(history)} in the books"
        )
    bodies: dict[str, set[bytes]] = {}
    for seen in list(spot.seen):
        bodies.setdefault(seen["webhook-id"], set()).add(seen.body)
    assert all(len(each) == 1 for each in bodies.values()), "an event was sent with other bytes"
    states = Counter(row["state"] for row in rows.values())
    assert states == {"delivered": len(rows)}, states
    return {
        "accepted": len(publisher.accepted),
        "lost": 0,
        "duplicated": sum(requests.values()) - len(requests),
        "refused": publisher.statuses[503],
        "unanswered": publisher.statuses["no answer"],
    }


def command(
    *arguments: str, folder: Path, seconds: float = COMMAND_S, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run `surehook …` to its end; `serve` gets the settings of a test server, and may be told others."""
    surehook = product_command()[0]
    env = {
        **plain_environment(),
        "SUREHOOK_DATABASE_URL": f"sqlite:///{folder / 'surehook.db'}",
        "SUREHOOK_API_KEY": KEY,
        "SUREHOOK_PORT": "0",
        **settings,
    }
    return subprocess.run(
        [surehook, *arguments],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def check_refusal(ended: subprocess.CompletedProcess[str], *says: str) -> str:
    """A command that would not start: a status other than 0, and words for people instead of a trace."""
    assert ended.returncode not in (0, None) and ended.returncode > 0, ended
    assert "Traceback" not in ended.stderr, ended.stderr
    for word in says:
        assert word in ended.stderr, (word, ended.stderr)
    return ended.stderr
