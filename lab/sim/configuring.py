"""Configuration that changes on one machine and must hold on another with the next call.

One tenant is changed by nobody else, one change after another: strict or not, an endpoint more, an endpoint less. As
soon as a change was answered, somebody publishes for that tenant, often through another machine, an event of a type
that is not registered. So what must be answered is known: a refusal where the tenant is strict, else as many
deliveries as there are endpoints. Some of these worlds have ledgers that take seconds to tell what has changed.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from lab.sim.clock import EPOCH_MS
from lab.sim.loop import ProcessDied
from surehook.core import ids
from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerError, Overloaded, Problem
from surehook.core.model import Endpoint, Secret, Tenant

if TYPE_CHECKING:
    from lab.sim.node import Machine
    from lab.sim.world import World

TENANT = "changing"
ACTS = ("strict", "loose", "add", "add", "remove", "remove")
TRIES = 30
PATIENCE_S = 30.0
SLOW = ("changes",)  # the calls of the ledger that may take long

Plan = tuple[tuple[float, str], ...]


def draw(chance: random.Random, storm_s: float) -> tuple[Plan, tuple[str, ...]]:
    """Acts as (instant, what), in two worlds of five, and which calls are slow."""
    if chance.random() < 0.6:
        return (), ()
    acts = [(chance.uniform(0, storm_s), chance.choice(ACTS)) for _ in range(chance.randint(4, 16))]
    return tuple(sorted(acts)), SLOW if chance.random() < 0.5 else ()


async def befall_configuration(world: World) -> None:
    """Carry out the acts of the options."""
    if world.options.configuring:
        await _Changing(world).run()


class _Changing:
    """The tenant as it must be known everywhere."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.seed.stream("configuration")
        self._is_strict = False
        self._endpoints: list[bytes] = []
        self._published = 0

    async def run(self) -> None:
        world = self._world
        await self._surely(lambda machine: machine.call(_add_tenant))
        for at, what in world.options.configuring:
            await asyncio.sleep(max(0.0, world.began + at - world.loop.time()))
            world.trace.note("configuration", what)
            if not await self._act(what):
                return
            await self._publish()

    async def _act(self, what: str) -> bool:
        """Change the tenant; False where nobody answered, so that nobody knows."""
        if what in ("strict", "loose"):
            self._is_strict = what == "strict"
            return await self._surely(lambda machine: machine.call(self._set_strict))
        if what == "add":
            made, secret = self._made()
            self._endpoints.append(made.id)
            return await self._surely(lambda machine: machine.call(lambda server: _add(server, made, secret)))
        if not self._endpoints:
            return True
        gone = self._endpoints.pop(self._chance.randrange(len(self._endpoints)))
        return await self._surely(lambda machine: machine.call(lambda server: server.delete_endpoint(gone)))

    async def _set_strict(self, server: Any) -> None:
        await server.change_tenant(TENANT, {"strict": self._is_strict})

    async def _surely(self, do: Any) -> bool:
        """Try until somebody answers. What was not answered is done or was never heard of, so it may be done again."""
        for _ in range(TRIES):
            try:
                await do(self._world.a_machine())
            except (ProcessDied, LedgerError):
                await asyncio.sleep(2.0)
                continue
            except Problem:
                pass  # done before
            return True
        return False

    async def _publish(self) -> None:
        world = self._world
        self._published += 1
        event = EventIn(tenant=TENANT, type="not.registered", data=b'{"n":%d}' % self._published)
        machine: Machine = world.a_machine()
        try:
            async with asyncio.timeout(PATIENCE_S):
                answer = await machine.call(lambda server: server.publish(event))
        except (ProcessDied, LedgerError, Overloaded, TimeoutError):
            return
        if isinstance(answer, Problem):
            if answer.code == "unknown_event_type" and not self._is_strict:
                world.book.find("a tenant that is not strict was answered unknown_event_type")
        elif self._is_strict:
            world.book.find(
                "a tenant that is strict on one machine had its unregistered type taken by another"
            )
        elif answer.problem is None and answer.fan_out != len(self._endpoints):
            world.book.find(
                f"a tenant that has {len(self._endpoints)} endpoints on one machine had {answer.fan_out} on another"
            )
        else:
            world.checkers.promised(answer.event, answer.fan_out)

    def _made(self) -> tuple[Endpoint, Secret]:
        """One more endpoint, at the first customer's receiver."""
        world, customer = self._world, self._world.options.customers[0]
        scheme = "https" if customer.port == 443 else "http"
        made = Endpoint(
            id=ids.uuid7(EPOCH_MS, self._chance.randbytes(10)), tenant=TENANT,
            url=f"{scheme}://{customer.host}/changing", event_types=("*",), policy=None, status="active", reason=None,
            failure_count=0, order="none", headers={}, description=None, created_at=EPOCH_MS, updated_at=EPOCH_MS,
        )  # fmt: skip
        material = self._chance.randbytes(32)
        world.secrets[customer.host].append(material)
        world.checkers.know(made.id, TENANT, made.url, None)
        secret_id = ids.uuid7(EPOCH_MS, self._chance.randbytes(10))
        return made, Secret(secret_id, made.id, "v1", material, EPOCH_MS, None)


async def _add_tenant(server: Any) -> None:
    await server.ledger.add_tenant(Tenant(TENANT, TENANT, False, EPOCH_MS))
    await server.engine.changed()


async def _add(server: Any, made: Endpoint, secret: Secret) -> None:
    """As the door does, with an id that may be given again."""
    if await server.ledger.endpoint(made.id) is None:
        await server.ledger.add_endpoint(made, secret)
    await server.engine.changed()
