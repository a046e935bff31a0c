"""Further questions of a person, a program or a scraper beside so many rows: through the API, as a serving process would answer.

Dry runs of replays (their answer, and the whole count where that is short), lists while one of them counts, resending and
cancelling one delivery, `/metrics`, what waits in the lanes, and what `doctor` reads. The engine is there and
nothing runs in it, so that what is charged is what was asked; what it counts for metrics beside all that is a line of its
own.
"""

# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple

import httpx

from lab.bench.lists_sqlite import NOW, RARE_ENDPOINT, RARE_TENANT, RARE_TYPE, TENANTS
from surehook.api import app as application
from surehook.api.auth import KeyRing
from surehook.api.services import Services
from surehook.api.traffic import Traffic, Watched
from surehook.bootstrap import open_transport
from surehook.cli import doctor_checks, doctor_services
from surehook.cli.doctor_checks import Finding
from surehook.config import Settings
from surehook.core import ids, instants
from surehook.core.instants import DAY_MS, HOUR_MS
from surehook.delivery.engine import Engine
from surehook.delivery.settings import EngineSettings
from surehook.host import process
from surehook.host.clock import SystemClock
from surehook.host.entropy import SystemEntropy
from surehook.http_server.bounds import ServerBounds
from surehook.http_server.connections import Connections
from surehook.scrape import snapshot
from surehook.telemetry.prometheus import PrometheusMetrics
from surehook.telemetry.pulse import Pulse

KEY = "a-key-of-the-benchmark"
ANSWER_MS = 150.0  # as for a list; a count that takes longer goes on after the answer
# Counted for metrics, for which nobody waits; loaded once; charged with the dry run that counts beside it.
UNJUDGED = ("what waits", "(", "beside it")
COUNT_S = 60.0  # dry runs are waited for so long


class At(SystemClock):
    """The clock of the day on which the rows end."""

    def __init__(self, now: int) -> None:
        super().__init__()
        self._ahead = now - SystemClock().now()

    def now(self) -> int:
        return super().now() + self._ahead


class Quiet:
    """Tells nobody."""

    def fact(self, name: str, **fields: Any) -> None: ...


class Asked(NamedTuple):
    """One request: CPU and time until its answer, and until what it began was over; milliseconds."""

    cpu_ms: float
    wall_ms: float
    said: str = ""
    whole_cpu_ms: float | None = None
    whole_wall_ms: float | None = None


class Door:
    """The API over a ledger, in this process."""

    def __init__(
        self, engine: Any, services: Services, client: httpx.AsyncClient, cpu_s: Callable[[], float]
    ) -> None:
        self.engine, self.services = engine, services
        self._client, self._cpu_s = client, cpu_s
        self.figures: dict[str, Asked] = {}

    async def timed(self, ask: Callable[[], Awaitable[Any]]) -> tuple[Any, float, float]:
        spent, began = self._cpu_s(), time.monotonic()
        answer = await ask()
        return answer, (self._cpu_s() - spent) * 1e3, (time.monotonic() - began) * 1e3

    async def ask(self, name: str, method: str, path: str, body: Any = None) -> Any:
        """One request, and a line about it."""
        request = partial(self._client.request, method, path, **({} if body is None else {"json": body}))
        response, cpu, wall = await self.timed(request)
        assert response.is_success, response.text
        self.keep(name, Asked(cpu, wall, f"{len(response.content)} bytes"))
        return response

    async def count(self, name: str, where: dict[str, Any]) -> None:
        """A dry run: its answer, and its end."""
        spent, began = self._cpu_s(), time.monotonic()
        made = await self._client.post("/v1/replays", json={"filter": where, "dry_run": True})
        cpu, wall = (self._cpu_s() - spent) * 1e3, (time.monotonic() - began) * 1e3
        assert made.is_success, made.text
        job = made.json()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(COUNT_S):
                await self.services.chores.idle()
        whole_cpu, whole_wall = (self._cpu_s() - spent) * 1e3, (time.monotonic() - began) * 1e3
        seen = (await self._client.get(f"/v1/replays/{job['id']}")).json()
        said = f"answered {job['state']} with {job['matched']}; {seen['state']} at {seen['matched']}"
        self.keep(name, Asked(cpu, wall, said, whole_cpu, whole_wall))

    def keep(self, name: str, asked: Asked) -> None:
        self.figures[name] = asked
        whole = (
            ""
            if asked.whole_cpu_ms is None
            else f"  whole {asked.whole_cpu_ms:.0f} ms CPU, {asked.whole_wall_ms:.0f} wall"
        )
        late = " late" if asked.cpu_ms > ANSWER_MS and not name.startswith(UNJUDGED) else ""
        print(f"{name:44}{asked.cpu_ms:10.1f}{asked.wall_ms:10.1f}  {asked.said}{whole}{late}", flush=True)


async def all_of(ledger: Any, url: str, cpu_s: Callable[[], float]) -> dict[str, Asked]:
    """Ask everything of an open ledger."""
    async with opened(ledger, cpu_s) as door:
        print(f"{'beside so many rows':44}{'CPU ms':>10}{'wall ms':>10}")
        await door.ask("(first request, which loads what composes lists)", "GET", "/v1/deliveries")
        await _looks(door)
        await _dry_runs(door)
        await _beside_a_dry_run(door)
        await _one_delivery(door)
        await _doctor(door, url)
        return door.figures


@asynccontextmanager
async def opened(ledger: Any, cpu_s: Callable[[], float]) -> AsyncIterator[Door]:
    """An engine that knows the configuration and does nothing by itself, behind the API."""
    clock, telemetry = At(NOW + HOUR_MS), Quiet()
    settings = Settings.load(flags={"api_key": KEY})
    engine = Engine(
        ledger=ledger, transport=open_transport(settings, clock), clock=clock, entropy=SystemEntropy(),
        host=process.here(), telemetry=telemetry, settings=EngineSettings(lanes=()),
    )  # fmt: skip
    await engine.loader.reload()
    pulse = Pulse(clock=clock, telemetry=telemetry, descriptors=lambda: (0, 1))
    callers = Connections(ServerBounds(), telemetry)
    traffic = Traffic(clock=clock, telemetry=telemetry, outage=engine.outage)
    metrics = PrometheusMetrics(
        partial(snapshot, engine, traffic, callers, pulse, role="api", ledger="bench")
    )
    services = Services(engine, KeyRing(ledger, own=[KEY]), traffic=traffic, metrics=metrics)
    await services.start(resume=False)
    door = Watched(application.build(services), traffic)
    transport = httpx.ASGITransport(app=door)
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://bench", headers=headers, timeout=600
    ) as client:
        yield Door(engine, services, client, cpu_s)
    await services.stop()
    await engine.transport.close()


async def _looks(door: Door) -> None:
    for turn in ("first", "next"):
        _, cpu, wall = await door.timed(door.engine.looks.count)
        door.keep(f"what waits, counted: {turn}", Asked(cpu, wall))
    for name in ("/metrics", "/v1/lanes", "/v1/breakers", "/v1/endpoints", "/v1/tenants"):
        await door.ask(f"GET {name}, first", "GET", name)
        await door.ask(f"GET {name}", "GET", name)


async def _dry_runs(door: Door) -> None:
    at = instants.render(NOW - 9 * DAY_MS)
    endpoints = {"small": (199 + 9 * TENANTS).to_bytes(16, "big"), "rare": RARE_ENDPOINT}
    for name, where in {
        "tenant rare": {"tenant": RARE_TENANT},
        "tenant small": {"tenant": "tenant_199"},
        "type rare": {"type": RARE_TYPE},
        "type none": {"type": "type.none"},
        "endpoint small": {"endpoint": ids.text(ids.ENDPOINT, endpoints["small"])},
        "subject none": {"subject": "none"},
        "an hour": {"since": at, "until": instants.render(NOW - 9 * DAY_MS + HOUR_MS)},
    }.items():
        await door.count(f"dry run: {name}", where)


async def _beside_a_dry_run(door: Door) -> None:
    """Everything that was delivered: it counts for minutes, and is given up. Those before have ended, or count on beside."""
    body = {"filter": {"state": "delivered"}, "dry_run": True}
    made = await door.ask("dry run: delivered (its answer)", "POST", "/v1/replays", body)
    lists = (
        ("tenant=tenant_199", "deliveries"),
        ("state=dead", "deliveries"),
        ("tenant=tenant_0", "notices"),
        ("tenant=tenant_0", "dead-letters"),
    )
    for query, name in lists:
        await door.ask(f"beside it: {name} {query}", "GET", f"/v1/{name}?{query}")
    await door.ask(
        "beside it: a second dry run", "POST", "/v1/replays", {"filter": {"type": RARE_TYPE}, "dry_run": True}
    )
    await door.ask("beside it: /metrics", "GET", "/metrics")
    seen = await door.ask("beside it: how far it is", "GET", f"/v1/replays/{made.json()['id']}")
    print(f"{'':44}{seen.json()['matched']} counted by then")
    await door.services.chores.stop()


async def _one_delivery(door: Door) -> None:
    listed = await door.ask("deliveries that are dead", "GET", "/v1/deliveries?state=dead&limit=2")
    first, second = (row["id"] for row in listed.json()["data"])
    await door.ask("resend a dead one", "POST", f"/v1/deliveries/{first}/resend")
    await door.ask("dismiss a dead letter", "POST", f"/v1/dead-letters/{second}/dismiss", {"note": "n"})
    parked = (
        await door.ask("deliveries that are parked", "GET", "/v1/deliveries?state=parked&limit=2")
    ).json()["data"]
    await door.ask("resend a parked one", "POST", f"/v1/deliveries/{parked[0]['id']}/resend")
    await door.ask("cancel a parked one", "POST", f"/v1/deliveries/{parked[1]['id']}/cancel")


async def _doctor(door: Door, url: str) -> None:
    settings = Settings.load(flags={"database_url": url})

    def look() -> list[Finding]:
        return (
            list(doctor_checks.database(settings, None))
            if settings.is_sqlite
            else [doctor_services.ledger(settings)]
        )

    await asyncio.to_thread(look)  # imports
    (found,), cpu, wall = await door.timed(partial(asyncio.to_thread, look))
    door.keep("doctor's look at the ledger", Asked(cpu, wall, found.state))
