"""A house for the door to open: the memory ledger, a small engine, a transport that answers as it is told.

Nothing here sleeps and nothing leaves the process. `House` runs its own event loop, so that tests stay plain
functions: they call, and look at what comes back.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import httpx

from lab.ledger.ledger import MemoryLedger
from lab.sim.entropy import SimEntropy
from surehook.api import app
from surehook.api.auth import KeyRing
from surehook.api.services import Services
from surehook.api.traffic import Traffic, Watched
from surehook.core import ids
from surehook.core.errors import Problem
from surehook.core.model import Attempt, Delivery, EndpointTls, Event, NodeRow, Notice, Settled
from surehook.core.steps import Steps
from surehook.delivery.caller_calls import CallerCalls
from surehook.delivery.directory import Directory
from surehook.delivery.endings import Endings
from surehook.delivery.endpoint_state import EndpointState, UrlBreaker
from surehook.delivery.loading import Loader
from surehook.delivery.managing import BreakerView
from surehook.delivery.outage import Outage
from surehook.delivery.tokens import Tokens
from surehook.delivery.watch import DeliveryCounts
from surehook.ports.ledger import Incoming
from surehook.ports.transport import Answer, Request

KEY = "a-key-of-the-tests"
START = 1_772_443_800_000  # 2026-03-02T09:30:00Z
NODE = b"\x01" * 16


class HandClock:
    """A clock that moves when it is moved, and when somebody sleeps."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> int:
        return self.at

    def boot(self) -> float:
        return self.at / 1000

    async def sleep(self, seconds: float) -> None:
        self.at += int(seconds * 1000)
        await asyncio.sleep(0)


class Target:
    def __init__(self, url: str) -> None:
        self.url = url


class ToldTransport:
    """Answers every request with `answer`, and keeps what was sent. Hosts that begin with `10.` are forbidden."""

    def __init__(self) -> None:
        self.answer = Answer(status=200, headers=b"content-type: text/plain\r\n", body=b"ok", total_us=1500)
        self.sent: list[Request] = []
        self.open: list[Callable[[Answer], None]] | None = None  # hangs: who waits for an answer

    def stored(self, url: str, *, tenant: str, tls: EndpointTls | None = None) -> Target:
        return self.target(url, tenant=tenant)

    def check_tls(self, tls: EndpointTls, *, url: str, now: int) -> None: ...

    def target(self, url: str, *, tenant: str, tls: EndpointTls | None = None) -> Target:
        return Target(url)

    async def check(self, url: str, *, tenant: str) -> None:
        scheme, _, rest = url.partition("://")
        if scheme != "https" or not rest:
            raise Problem("url_scheme", "only https", field="url")
        if rest.startswith("10."):
            raise Problem("address_forbidden", "not a public address", field="url", hint="choose another")

    def send(self, request: Request, done: Callable[[Answer], None]) -> Any:
        self.sent.append(request)
        if self.open is not None:
            self.open.append(done)
        else:
            asyncio.get_running_loop().call_soon(done, self.answer)
        return self

    def abort(self) -> None: ...

    async def close(self) -> None: ...


class Facts:
    """Keeps what was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def fact(self, name: str, **fields: Any) -> None:
        self.told.append((name, {key: value for key, value in fields.items() if value is not None}))


class Metrics:
    async def rendering(self) -> Steps[bytes]:
        return self._steps()

    def _steps(self) -> Steps[bytes]:
        yield 1
        return b"surehook_up 1\n"


def _fail(name: str, error: BaseException) -> None:
    raise error


class SmallEngine:
    """`api.services.Engine` without the sending."""

    def __init__(self, ledger: Any) -> None:
        self.ledger = ledger
        self.clock = HandClock()
        self.entropy = SimEntropy(random.Random(7))
        self.transport = ToldTransport()
        self.telemetry = Facts()
        self.outage = Outage(clock=self.clock, telemetry=self.telemetry)
        self.watch = DeliveryCounts()
        self.caller_calls = CallerCalls()
        self.directory = Directory(transport=self.transport, slots=32)
        self.tokens = Tokens(
            transport=self.transport,
            clock=self.clock,
            telemetry=self.telemetry,
            loops=SimpleNamespace(defect=_fail),  # type: ignore[arg-type]
            directory=self.directory,
            dispatch=SimpleNamespace(on_token=lambda route: None),  # type: ignore[arg-type]
        )
        self._loader = Loader(registry=ledger, directory=self.directory, follower=self)
        self.unready: str | None = None
        self.warned: str | None = None
        self.views: list[BreakerView] = []
        self.removed: list[bytes] = []
        self.hastened: list[bytes] = []
        self.woken = 0
        self.looks: list[Any] = []
        self.endings = Endings(
            ledger=ledger,
            directory=self.directory,
            watch=self.watch,
            notices=SimpleNamespace(tell=lambda notice: None),  # type: ignore[arg-type]
        )

    # `delivery.loading.Follower`

    def touched(self, route: EndpointState) -> None: ...

    def dropped(self, route: EndpointState) -> None: ...

    def settled(self) -> None:
        self.directory.breakers.settle(self.clock.now())

    # what the door asks

    def close_breaker(self, breaker: UrlBreaker) -> None:
        breaker.close(self.clock.now())

    async def current(self) -> None:
        await self.changed()

    async def changed(self) -> None:
        await self._loader.reload()

    def probe_now(self, endpoint: bytes) -> None:
        self.hastened.append(endpoint)
        self.directory.routes[endpoint].breaker.hasten(self.clock.now())

    def endpoint_removed(self, endpoint: bytes) -> None:
        self.removed.append(endpoint)

    def wake(self) -> None:
        self.woken += 1

    def ready(self) -> str | None:
        return self.unready

    def warning(self) -> str | None:
        return self.warned

    def look_after(self, name: str, work: Any) -> None:
        self.looks.append(work)

    def lanes(self) -> tuple[int, int]:
        return (512, 256)

    async def lane_counts(self) -> Any:
        return await self.ledger.lane_counts(now=self.clock.now())

    async def parked_counts(self) -> Any:
        return await self.ledger.parked_counts()

    def in_flight(self) -> dict[str, int]:
        return {"first": 7, "retry": 0}

    def breakers(self) -> list[BreakerView]:
        return self.views


class House:
    """The API over a memory ledger, with the moves that tests need."""

    def __init__(self, ledger: Any = None, **options: Any) -> None:
        self.runner = asyncio.Runner()
        self.ledger = ledger or MemoryLedger()
        self.engine = SmallEngine(self.ledger)
        self.services = self.new_services(**options)
        self.app = app.build(self.services)
        self.door = Watched(self.app, self.services.traffic)
        self.run(self._open())

    def new_traffic(self) -> Traffic:
        engine = self.engine
        return Traffic(clock=engine.clock, telemetry=engine.telemetry, outage=engine.outage)

    def new_services(self, **options: Any) -> Services:
        """Services as another process on this ledger would have them."""
        keys = KeyRing(self.ledger, own=[KEY])
        return Services(self.engine, keys, traffic=self.new_traffic(), metrics=Metrics(), **options)

    async def _open(self) -> None:
        await self.ledger.open(now=START)
        await self.ledger.enter(NodeRow(id=NODE, host="h", boot_id="b", pid=1, started_at=START), now=START)
        await self.engine.changed()
        await self.services.start()

    def close(self) -> None:
        self.run(self.services.stop())
        self.run(self.ledger.close())
        self.runner.close()

    def run(self, work: Any) -> Any:
        return self.runner.run(work)

    # -- calling ----------------------------------------------------------------------------------------

    def call(self, method: str, path: str, *, key: str | None = KEY, **kwargs: Any) -> httpx.Response:
        """One request. Exceptions of the application are not caught: none may come."""
        headers = dict(kwargs.pop("headers", {}))
        if key is not None:
            headers.setdefault("authorization", f"Bearer {key}")

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.door)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                response = await client.request(method, path, headers=headers, **kwargs)
            await self.services.chores.idle()
            return response

        return self.run(send())

    def get(self, path: str, **kwargs: Any) -> Any:
        response = self.call("GET", path, **kwargs)
        assert response.status_code == 200, response.text
        return response.json()

    def post(self, path: str, body: Any = None, status: int = 200) -> Any:
        response = self.call("POST", path, **({} if body is None else {"json": body}))
        assert response.status_code == status, response.text
        return response.json()

    # -- things to call about ---------------------------------------------------------------------------

    def tenant(self, tenant: str = "acme") -> str:
        self.post("/v1/tenants", {"id": tenant, "name": tenant.title()}, 201)
        return tenant

    def endpoint(self, tenant: str = "acme", **fields: Any) -> dict[str, Any]:
        body = {"tenant": tenant, "url": "https://hooks.example.com/a", "event_types": ["*"], **fields}
        return self.post("/v1/endpoints", body, 201)

    def publish(
        self, *endpoints: dict[str, Any], data: bytes = b'{"n":1}', **fields: Any
    ) -> tuple[str, list[str]]:
        """An event with a delivery to each endpoint, as accepting would write it. Returns the ids."""
        now = self.engine.clock.now()
        event_id = ids.uuid7(now, self.engine.entropy.bits(10))
        values: dict[str, Any] = {
            "tenant": "acme", "type": "document.signed", "schema_version": "1", "subject": None, "sequence": None,
            "workflow_version": None, "correlation_id": None, "causation_id": None, "source": None,
            "occurred_at": None,
        } | fields  # fmt: skip
        event = Event(
            id=event_id, accepted_at=now, body=b'{"id":"x","data":' + data + b"}", digest=b"\0" * 32,
            fan_out=len(endpoints), **values,
        )  # fmt: skip
        deliveries = [
            Delivery(
                id=ids.delivery_id(event_id, self.engine.entropy.bits(6)), event=event_id,
                endpoint=ids.parse(ids.ENDPOINT, endpoint["id"]), tenant=event.tenant, type=event.type, lane=0,
                attempt=1, due_at=now, born_at=now, body=event.body,
            )
            for endpoint in endpoints
        ]  # fmt: skip
        version = self.run(self.ledger.version())
        self.run(self.ledger.accept([Incoming(event, deliveries)], node=NODE, version=version, now=now))
        return ids.text(ids.EVENT, event_id), [ids.text(ids.DELIVERY, each.id) for each in deliveries]

    def take(self, delivery: str) -> Delivery:
        """Lease a delivery, as a worker does before it sends."""
        raw = ids.parse(ids.DELIVERY, delivery)
        (taken,) = self.run(self.ledger.claim_ids([raw], node=NODE, now=self.engine.clock.now())).rows
        return taken

    def finish(self, delivery: str, end: str = "dead", **entry: Any) -> None:
        """One attempt, and the end."""
        self.settle(delivery, end=end, **entry)

    def settle(
        self,
        delivery: str,
        *,
        end: str | None = None,
        due_at: int = 0,
        parked: str | None = None,
        request_headers: bytes | None = None,
        **entry: Any,
    ) -> None:
        taken = self.take(delivery)
        now = self.engine.clock.now()
        values: dict[str, Any] = {
            "outcome": "delivered" if end == "delivered" else "refused",
            "status": 500,
        } | entry
        attempt = Attempt(
            delivery=taken.id, number=taken.attempt, kind="attempt", lane=taken.lane, started_at=now, **values
        )
        settled = Settled(
            delivery=taken,
            entry=attempt,
            end=end,
            lane=1,
            number=taken.attempt + 1,
            due_at=due_at,
            parked=parked,
            request_headers=request_headers,
        )
        self.run(self.ledger.record([settled], node=NODE, health=[], breakers=[], notices=[], now=now))

    def notice(self, kind: str, at: int = START) -> None:
        notice = Notice(
            id=ids.uuid7(at, self.engine.entropy.bits(10)), at=at, kind=kind, tenant="acme", endpoint=None,
            delivery=None, detail="said",
        )  # fmt: skip
        self.run(self.ledger.record([], node=NODE, health=[], breakers=[], notices=[notice], now=at))
