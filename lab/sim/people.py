"""Those who click: pause and activate, delete, change a policy, rotate a secret, resend, cancel, replay."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from lab.sim.breaker_plans import RELEASED
from lab.sim.loop import ProcessDied
from lab.sim.orders import Order
from lab.sim.policies import POLICIES
from surehook.core import signature
from surehook.core.errors import LedgerError, Problem

if TYPE_CHECKING:
    from lab.sim.world import World

ROUNDS = 4  # of putting right: a result under way may still switch an endpoint off
ROUND_S = 20.0
TRIES = 10
OPENS_WITHIN_S = 10


class People:
    """Carries out the orders of the options through the same operations that the HTTP door calls."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = world.seed.stream("people")
        self._moves = 0

    async def run(self) -> None:
        world = self._world
        for order in world.options.orders:
            await asyncio.sleep(max(0.0, world.began + order.at - world.loop.time()))
            world.trace.note(f"order-{order.what}", str(order.which))
            await self._try(order)

    async def put_right(self) -> None:
        """After the storm: every endpoint that still exists is active, and stays so."""
        for _ in range(ROUNDS):
            for number in range(len(self._world.endpoints)):
                await self._try(Order(0.0, "activate", number))
            await asyncio.sleep(ROUND_S)

    async def _try(self, order: Order) -> None:
        """A door that is shut is tried again a little later; a refusal is an answer."""
        for _ in range(TRIES):
            try:
                await self._do(order)
            except Problem as problem:
                self._world.trace.note("answer", f"{order.what} {problem.code}")
            except (ProcessDied, LedgerError):
                await asyncio.sleep(2.0)
                continue
            return

    async def _do(self, order: Order) -> None:
        world = self._world
        machine = world.a_machine()
        if order.what == "replay":
            await machine.call(lambda server: server.replay(world.options.customers[order.which].tenant))
            return
        if order.what in ("resend", "cancel"):
            rows = sorted(world.book.rows)
            if rows:
                row = rows[order.which % len(rows)]
                with world.checkers.hastening(world.book.rows[row].endpoint, world.loop.time):
                    await machine.call(lambda server: _on_delivery(server, order.what, row))
            return
        endpoint = world.endpoints[order.which]
        customer = world.options.customers[order.which]
        if order.what == "rotate":
            with world.checkers.hastening(endpoint, world.loop.time):
                secret: str = await machine.call(lambda server: server.rotate_secret(endpoint))
            world.secrets[customer.host].append(signature.read_secret(secret)[1])
        elif order.what == "delete":
            await machine.call(lambda server: server.delete_endpoint(endpoint))
            world.trace.note("deleted", customer.host)
        elif order.what == "policy":
            if endpoint in world.checkers.released:
                return  # so that it is known what holds there
            policy = self._chance.choice(POLICIES)
            raw = None if policy is None else json.dumps(policy).encode()
            with world.checkers.other_policy(endpoint, policy, world.loop.time):
                await machine.call(lambda server: server.change_endpoint(endpoint, {"policy": raw}))
        elif order.what == "release":
            await self._release(machine, endpoint)
        elif order.what == "move":
            await self._move(machine, endpoint, order.which)
        else:
            status = "paused" if order.what == "pause" else "active"
            with world.checkers.hastening(endpoint, world.loop.time):
                await machine.call(lambda server: server.change_endpoint(endpoint, {"status": status}))

    async def _release(self, machine: Any, endpoint: bytes) -> None:
        """The endpoint heeds no breaker any more, and the one that it heeded is open, if it ever opens."""
        world = self._world
        for _ in range(OPENS_WITHIN_S):
            if world.checkers.urls[endpoint] in world.book.breakers:
                break
            await asyncio.sleep(1.0)
        world.checkers.loose_policies.add(endpoint)
        world.checkers.released.setdefault(endpoint, False)
        raw = json.dumps(RELEASED).encode()
        await machine.call(lambda server: server.change_endpoint(endpoint, {"policy": raw}))
        world.checkers.released[endpoint] = True

    async def _move(self, machine: Any, endpoint: bytes, number: int) -> None:
        """Another path at the same host: another breaker, the same receiver. Whatever was found out at the old one
        says nothing about the new one."""
        world = self._world
        self._moves += 1
        tenant, before = world.checkers.urls[endpoint]
        after = f"{before.rpartition('/')[0]}/moved{self._moves}"
        world.verdicts.moves(endpoint, f"{after}?id={number}")
        changes = {"url": f"{after}?id={number}", "status": "active"}
        with world.checkers.hastening(endpoint, world.loop.time, moves_to=after):
            await machine.call(lambda server: server.change_endpoint(endpoint, changes))
        world.checkers.urls[endpoint] = (tenant, after)
        world.verdicts.at(endpoint, f"{after}?id={number}")


async def _on_delivery(server: Any, what: str, row: bytes) -> None:
    if what == "resend":
        await server.resend(row)
    else:
        await server.cancel(row)
