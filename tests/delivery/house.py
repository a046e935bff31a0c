"""A whole engine in virtual time: memory ledger, scripted transport, one place to ask what happened."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from lab.ledger.ledger import MemoryLedger
from lab.sim.clock import SimClock
from lab.sim.entropy import Seed, SimEntropy
from lab.sim.loop import SimLoop, run
from surehook.core import envelope, ids
from surehook.core.model import Attempt, Endpoint, EndpointTls, NodeRow, Secret, Tenant
from surehook.delivery.engine import Engine
from surehook.delivery.settings import EngineSettings
from surehook.ports.ledger import Taken
from surehook.ports.reading import DeliveryFilter, DeliveryView, NoticeFilter
from surehook.ports.transport import Answer, Request

T = TypeVar("T")
TENANT = "acme"


class Url:
    def __init__(self, url: str) -> None:
        self.url = url


class Call:
    """One request as the transport saw it."""

    def __init__(self, request: Request, at: float, done: Callable[[Answer], None]) -> None:
        self.url = request.target.url
        self.request = request
        self.at = at
        self.timeout_s = request.timeout_s
        lines = (request.headers + request.private).decode().splitlines()
        self.headers = dict(line.split(": ", 1) for line in lines)
        self._done: Callable[[Answer], None] | None = done

    def answer(self, answer: Answer) -> None:
        if self._done is not None:
            done, self._done = self._done, None
            done(answer)

    def abort(self) -> None:
        asyncio.get_running_loop().call_soon(self.answer, Answer(failure="aborted", unknown=True))


Script = Callable[[Call], tuple[float, Answer] | None]


def answers(status: int, *, after: float = 0.01, headers: bytes = b"", body: bytes = b"") -> Script:
    """A receiver that answers after some seconds, or runs into the request's own deadline."""

    def script(call: Call) -> tuple[float, Answer]:
        if after >= call.timeout_s:
            return call.timeout_s, Answer(failure="timeout", unknown=True, total_us=int(call.timeout_s * 1e6))
        return after, Answer(status=status, headers=headers, body=body, total_us=int(after * 1e6))

    return script


HANGS = answers(200, after=1e9)
REFUSES: Script = lambda call: (0.001, Answer(failure="connect_refused", total_us=1000))  # noqa: E731


class Receivers:
    """`ports.Transport`: each URL has a script; calls are kept in order."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.calls: list[Call] = []

    def target(self, url: str, *, tenant: str, tls: EndpointTls | None = None) -> Url:
        return Url(url)

    def stored(self, url: str, *, tenant: str, tls: EndpointTls | None = None) -> Url:
        return Url(url)

    def check_tls(self, tls: EndpointTls, *, url: str, now: int) -> None: ...

    async def check(self, url: str, *, tenant: str) -> None: ...

    def send(self, request: Request, done: Callable[[Answer], None]) -> Call:
        loop = asyncio.get_running_loop()
        call = Call(request, loop.time(), done)
        if request.permit is not None and not request.permit():
            loop.call_soon(call.answer, Answer(failure="aborted"))
            return call
        self.calls.append(call)
        planned = self.scripts.get(call.url, answers(200))(call)
        if planned is not None:
            loop.call_later(planned[0], call.answer, planned[1])
        return call

    async def close(self) -> None: ...

    def at(self, url: str) -> list[Call]:
        return [call for call in self.calls if call.url == url]


class Host:
    def this_node(self, node_id: bytes, *, now: int) -> NodeRow:
        return NodeRow(id=node_id, host="here", boot_id="boot", pid=1, started_at=now)

    def is_gone(self, node: NodeRow) -> bool:
        return True


class Facts:
    def __init__(self) -> None:
        self.names: list[str] = []
        self.details: list[tuple[str, Any]] = []  # of each, in the same order

    def fact(self, name: str, **fields: Any) -> None:
        self.names.append(name)
        self.details.append((name, fields.get("detail")))


class House:
    """The engine with its world. `faults` may raise inside the ledger (see lab/ledger/hooks.py)."""

    def __init__(
        self, loop: SimLoop, settings: EngineSettings, ledger: type[MemoryLedger] = MemoryLedger
    ) -> None:
        self.faults: Callable[[str], None] = lambda step: None
        self.clock = SimClock(loop)
        self.receivers = Receivers()
        self.facts = Facts()
        self.ledger = ledger(faults=lambda step: self.faults(step))
        self.entropy = SimEntropy(Seed(1).stream("house"))
        self.settings = settings
        self.engine = self.another()

    def another(self) -> Engine:
        """A further engine on the same ledger, as after a restart."""
        return Engine(
            ledger=self.ledger, transport=self.receivers, clock=self.clock, entropy=self.entropy, host=Host(),
            telemetry=self.facts, settings=self.settings,
        )  # fmt: skip

    async def open(self) -> None:
        await self.engine.start()
        await self.ledger.add_tenant(Tenant(TENANT, TENANT, False, self.clock.now()))

    async def endpoint(
        self,
        url: str = "https://a.example/hook",
        *,
        policy: str | dict[str, Any] | None = None,
        types: tuple[str, ...] = ("*",),
        tenant: str = TENANT,
    ) -> bytes:
        now = self.clock.now()
        endpoint = Endpoint(
            ids.uuid7(now, self.entropy.bits(10)), tenant, url, types,
            None if policy is None else json.dumps(policy).encode(),
            "active", None, 0, "none", {}, None, now, now,
        )  # fmt: skip
        secret = Secret(ids.uuid7(now, self.entropy.bits(10)), endpoint.id, "v1", b"k" * 32, now, None)
        await self.ledger.add_endpoint(endpoint, secret)
        await self.engine.changed()
        return endpoint.id

    async def tenant(self, name: str) -> None:
        """One more tenant."""
        await self.ledger.add_tenant(Tenant(name, name, False, self.clock.now()))
        await self.engine.changed()

    async def set(self, endpoint: bytes, **changes: Any) -> None:
        await self.ledger.change_endpoint(endpoint, changes, now=self.clock.now())
        await self.engine.changed()

    async def publish(
        self,
        count: int = 1,
        *,
        key: str | None = None,
        n: int = 0,
        type: str = "doc.signed",
        tenant: str = TENANT,
        size: int = 0,
    ) -> list[Taken]:
        """`size`: bytes of text in the data."""
        data = {"n": n, "text": "x" * size} if size else {"n": n}
        raw = json.dumps({"tenant": tenant, "type": type, "data": data}).encode()
        taken: list[Taken] = []
        for _ in range(count):
            answer = await self.engine.take((envelope.decode_event(raw),), (key,))
            assert isinstance(answer[0], Taken)
            taken.append(answer[0])
        return taken

    async def deliveries(self, **where: Any) -> list[DeliveryView]:
        page = await self.ledger.deliveries(DeliveryFilter(**where), limit=200, after=None)
        return list(page.data)

    async def states(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for view in await self.deliveries():
            name = view.state if view.reason is None else f"{view.state}:{view.reason}"
            counts[name] = counts.get(name, 0) + 1
        return counts

    async def story(self, view: DeliveryView) -> list[Attempt]:
        return await self.ledger.attempts(view.id)

    async def notices(self) -> list[str]:
        page = await self.ledger.notices(NoticeFilter(), limit=200, after=None)
        return [notice.kind for notice in page.data]

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def route(self, endpoint: bytes) -> Any:
        return self.engine.directory.routes[endpoint]


def in_house(
    story: Callable[[House], Awaitable[T]],
    *,
    seed: int = 0,
    settings: EngineSettings | None = None,
    stops: bool = True,
    ledger: type[MemoryLedger] = MemoryLedger,
) -> T:
    """Run a story in a fresh house; afterwards the engine stops, and memory must be empty."""

    async def main() -> T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimLoop)
        house = House(loop, settings or EngineSettings(), ledger)
        await house.open()
        result = await story(house)
        if stops:
            await house.engine.stop()
            assert house.engine.dispatch.memory.held == 0, "every delivery that memory held was let go"
            assert house.engine.dispatch.memory.held_bytes == 0
        return result

    return run(main(), seed=seed)
