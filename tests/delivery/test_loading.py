"""Configuration into memory: differences come to the same as reading everything, and nobody waits for either."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from lab.ledger.ledger import MemoryLedger
from surehook.core import ids
from surehook.core.authentication import ClientCredentials
from surehook.core.errors import LedgerUnavailable, Problem
from surehook.core.model import Endpoint, EndpointHealth, EventType, NodeRow, Secret, Tenant
from surehook.core.schema_versions import Versions
from surehook.delivery.directory import Directory
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.freshness import NAMES_KEPT, Changed
from surehook.delivery.loading import PAGE_ROWS, SLICE_ROWS, Loader
from tests.budget import examples
from tests.delivery.house import Receivers

NOW = 1_767_225_600_000
NODE = NodeRow(id=b"n" * 16, host="here", boot_id="boot", pid=1, started_at=NOW)
TENANTS = ("acme", "globex")
TYPES = ("document.signed", "invoice.paid")


def endpoint_id(number: int) -> bytes:
    return ids.uuid7(NOW, number.to_bytes(10, "big"))


def endpoint(number: int, tenant: str = "acme", **fields: Any) -> Endpoint:
    plain = Endpoint(
        id=endpoint_id(number), tenant=tenant, url=f"https://a.example/{number}", event_types=("*",), policy=None,
        status="active", reason=None, failure_count=0, order="none", headers={}, description=None,
        created_at=NOW, updated_at=NOW,
    )  # fmt: skip
    return structs.replace(plain, **fields)


def secret(number: int, owner: bytes) -> Secret:
    return Secret(endpoint_id(number), owner, "v1", bytes(32), NOW, None)


class Memory:
    """A directory that follows a ledger, and what its loader told."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self.directory = Directory(transport=Receivers(), slots=8)
        self.loader = Loader(registry=ledger, directory=self.directory, follower=self)
        self.touched_ids: list[bytes] = []
        self.dropped_ids: list[bytes] = []

    # `loading.Follower`

    def touched(self, route: EndpointState) -> None:
        self.touched_ids.append(route.endpoint.id)

    def dropped(self, route: EndpointState) -> None:
        self.dropped_ids.append(route.endpoint.id)

    def settled(self) -> None:
        self.directory.breakers.settle(0)

    def shown(self) -> dict[str, Any]:
        """Everything the hot path could ask it."""
        directory = self.directory
        return {
            "tenants": {name: one.strict for name, one in directory.tenants.items()},
            "types": {name: one.schema_version for name, one in directory.types.items()},
            "schemas": {name: _sources(one) for name, one in directory.schemas.items()},
            "routes": {id: _shown(route) for id, route in directory.routes.items()},
            "fan-out": {
                (tenant, event_type): [route.endpoint.id for route in directory.fan_out(tenant, event_type)]
                for tenant in TENANTS
                for event_type in TYPES
            },
            "plans": {
                (id, event_type): directory.plan(route, event_type).policy
                for id, route in directory.routes.items()
                for event_type in TYPES
            },
            "grants": {
                key: sorted(route.endpoint.id for route in directory.with_credential(grant))
                for key, grant in directory._credentials.items()
                if directory.with_credential(grant)
            },
        }


def _sources(schemas: Versions) -> Any:
    others = {version: one.source for version, one in (schemas.others or {}).items()}
    return schemas.own, schemas.schema and schemas.schema.source, schemas.others is None, others


def _shown(route: EndpointState) -> Any:
    told = structs.replace(route.endpoint, description=None, updated_at=0, failure_count=0)
    return told, route.secrets, route.status, route.head, route.private, route.target.url


# -- differences ------------------------------------------------------------------------------------------


class Play:
    """Changes drawn from numbers; what cannot be done is left."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self._ledger = ledger
        self._made = 0

    async def step(self, what: int, which: int, how: int) -> None:
        ledger, name = self._ledger, TENANTS[which % 2]
        there = sorted(ledger.book.endpoints)
        chosen = there[which % len(there)] if there else b""
        self._made += 1
        try:
            match what:
                case 0:
                    await ledger.add_tenant(Tenant(name, name, how % 2 == 0, NOW))
                case 1:
                    await ledger.change_tenant(name, {"strict": how % 2 == 0, "name": str(how)})
                case 2:
                    await ledger.remove_tenant(name)
                case 3:
                    filters = (("*",), ("document.*",), ("invoice.paid", "x"))[how % 3]
                    client = ClientCredentials("https://t.example/", "me", "s") if how > 4 else None
                    made = endpoint(self._made, name, event_types=filters, authentication=client)
                    await ledger.add_endpoint(made, secret(self._made, made.id))
                case 4:
                    await ledger.remove_endpoint(chosen)
                case 5:
                    field = (
                        {"description": str(how)}, {"url": f"https://b.example/{how}"}, {"status": "paused"},
                        {"event_types": ("document.signed",)}, {"policy": b'"signing"'}, {"headers": {"x": "y"}},
                        {"authentication": None}, {"status": "active"},
                    )[how % 8]  # fmt: skip
                    await ledger.change_endpoint(chosen, field, now=NOW + self._made)
                case 6:
                    await ledger.rotate_secret(secret(self._made, chosen), old_expires_at=NOW + how)
                case 7:
                    schema = b'{"type":"object"}' if how % 2 else None
                    kind = EventType(
                        TYPES[which % 2], None, schema, "1", b'"insigner"' if how > 4 else None, NOW
                    )
                    await ledger.add_event_type(kind)
                case 8:
                    changes = (
                        {"schema": None}, {"policy": b'"yousign"'}, {"schema_version": str(how)},
                        {"schemas": b'{"2":{"type":"object"},"3":{}}'}, {"schemas": None},
                    )[how % 5]  # fmt: skip
                    await ledger.change_event_type(TYPES[which % 2], changes)
                case 9:
                    health = EndpointHealth(chosen, False, 1, None, "inactive", "gone")
                    await ledger.record([], node=NODE.id, health=[health], breakers=[], notices=[], now=NOW)
                case _:
                    ledger.book.version += 1  # a program from before there were notes
        except Problem:
            pass


STEPS = st.lists(
    st.tuples(st.integers(0, 10), st.integers(0, 5), st.integers(0, 9), st.booleans()), max_size=60
)


@settings(max_examples=examples(150), deadline=None)
@given(STEPS)
def test_any_changes_taken_over_as_differences_come_to_the_same_as_reading_everything(steps: Any) -> None:
    async def play() -> None:
        ledger = MemoryLedger()
        await ledger.enter(NODE, now=NOW)
        follows, story = Memory(ledger), Play(ledger)
        await follows.loader.reload()
        for what, which, how, looks in steps:
            await story.step(what, which, how)
            if looks:
                await follows.loader.reload()
        await follows.loader.reload()
        reads = Memory(ledger)
        await reads.loader.reload()
        assert follows.shown() == reads.shown()
        assert follows.directory.version == reads.directory.version == ledger.book.version

    asyncio.run(play())


class Counting(MemoryLedger):
    """Says how often everything was read, and can change while it is."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = 0
        self.between: Any = None

    async def configuration(self, after: bytes | None, *, limit: int) -> Any:  # type: ignore[override]
        self.pages += 1
        page = await super().configuration(after, limit=limit)
        if self.between is not None:
            await self.between()
        return page


async def _filled(ledger: MemoryLedger, count: int) -> None:
    await ledger.add_tenant(Tenant("acme", "acme", False, NOW))
    for number in range(count):
        await ledger.add_endpoint(endpoint(number), secret(number, endpoint_id(number)))


def test_one_change_touches_one_endpoint_and_reads_no_page() -> None:
    async def play() -> None:
        ledger = Counting()
        await _filled(ledger, 20)
        memory = Memory(ledger)
        await memory.loader.reload()
        pages = ledger.pages
        memory.touched_ids.clear()
        await ledger.change_endpoint(endpoint_id(3), {"status": "paused"}, now=NOW)
        await ledger.remove_endpoint(endpoint_id(4))
        await memory.loader.reload()
        assert (memory.touched_ids, memory.dropped_ids) == ([endpoint_id(3)], [endpoint_id(4)])
        assert ledger.pages == pages

    asyncio.run(play())


def test_what_changes_while_everything_is_read_is_not_missed() -> None:
    """A deletion behind the reader and an addition behind it, both while pages are read."""

    async def play() -> None:
        ledger = Counting()
        await _filled(ledger, PAGE_ROWS + 20)
        memory = Memory(ledger)

        async def once() -> None:
            if ledger.pages == 3:
                await ledger.remove_endpoint(endpoint_id(1))
                await ledger.change_endpoint(endpoint_id(2), {"status": "paused"}, now=NOW)

        ledger.between = once
        await memory.loader.reload()
        await memory.loader.reload()
        fresh = Memory(ledger)
        await fresh.loader.reload()
        assert endpoint_id(1) not in memory.directory.routes
        assert memory.shown() == fresh.shown()

    asyncio.run(play())


def test_others_have_their_turn_while_much_is_taken_over() -> None:
    async def play() -> None:
        ledger = MemoryLedger()
        await _filled(ledger, SLICE_ROWS * 10)
        memory = Memory(ledger)
        ended = asyncio.Event()
        seen: list[int] = []

        async def watch() -> None:
            while not ended.is_set():
                seen.append(len(memory.touched_ids))
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        await memory.loader.reload()
        ended.set()
        await watching
        steps = [after - before for before, after in pairwise(seen)]
        assert max(steps) <= SLICE_ROWS

    asyncio.run(play())


def test_those_who_ask_at_the_same_time_share_a_reading() -> None:
    async def play() -> None:
        asked = 0

        class Slow(MemoryLedger):
            async def changes(self, since: int, *, limit: int) -> Any:  # type: ignore[override]
                nonlocal asked
                asked += 1
                await asyncio.sleep(0)
                return await super().changes(since, limit=limit)

        memory = Memory(Slow())
        await memory.loader.reload()
        asked = 0
        await asyncio.gather(*(memory.loader.reload() for _ in range(50)))
        assert asked <= 2

    asyncio.run(play())


def test_a_reading_that_failed_is_begun_anew() -> None:
    async def play() -> None:
        fails = True

        def faults(step: str) -> None:
            if fails and step == "before configuration":
                raise LedgerUnavailable("away")

        ledger = MemoryLedger(faults=faults)
        await _filled(ledger, 3)
        memory = Memory(ledger)
        try:
            await memory.loader.reload()
        except LedgerUnavailable:
            fails = False
        assert memory.directory.version == -1
        await memory.loader.reload()
        assert len(memory.directory.routes) == 3

    asyncio.run(play())


# -- who must be judged anew ------------------------------------------------------------------------------


def test_only_what_changed_after_a_version_is_old() -> None:
    changed = Changed()
    changed.tenant("acme", 5)
    changed.event_type("a.b", 6)
    assert changed.since(4, "acme", "x") and not changed.since(5, "acme", "x")
    assert changed.since(5, "globex", "a.b") and not changed.since(6, "globex", "a.b")
    assert not changed.since(0, "globex", "x")
    changed.all(9)
    assert changed.since(8, "globex", "x") and not changed.since(9, "globex", "x")


def test_what_is_remembered_of_changes_is_bounded_and_never_says_no_wrongly() -> None:
    changed = Changed()
    for version in range(NAMES_KEPT + 10):
        changed.tenant(f"t{version}", version)
    assert changed.since(5, "t7", "x")  # forgotten, and therefore taken for changed
    assert not changed.since(NAMES_KEPT, "t7", "x")
    assert len(changed._tenants) == NAMES_KEPT
