"""The sender's world with an inbox at its other end."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import structs

from lab.sim.clock import EPOCH_MS, SimClock
from lab.sim.entropy import SimEntropy
from lab.sim.inbox.application import Application, Tempers, source_of
from lab.sim.inbox.database import Database
from lab.sim.inbox.door import Door
from lab.sim.inbox.oracle import Oracle
from lab.sim.inbox.people import REJECT_SHARE, STRICT_SHARE, Clerks
from lab.sim.inbox.plan import Echo, Plan, Rotation
from lab.sim.inbox.store import Faults, SimStore
from lab.sim.loop import Process, ProcessDied, SimLoop
from lab.sim.node import Machine
from lab.sim.orders import Blow
from lab.sim.publishers import Publishers
from lab.sim.receivers import Receiver
from lab.sim.swarm import Customer, Options
from lab.sim.world import LOOK_S, World
from surehook.core import ids, signature
from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerError, Problem
from surehook.delivery.loading import read_all
from surehook.inbox.rules import Rules
from surehook.inbox.sql.tables import LEASES

DELIVER_S = 1_500.0  # after the sender's calm, for what it had given up or put off for days
PROCESS_S = 1_000.0  # after that, for the inbox: a clock that was set back makes it wait that long at most
LONG_LEASE_SHARE = 0.5
SENDER_ROUNDS_S = 20.0
STRICT_ROUNDS = 3  # in which moves are still rejected
PATIENCE_S = 60.0  # until people do something although not all is quiet: it may wait for just that


class InboxWorld(World):
    """One customer, whose endpoint is an inbox."""

    def __init__(self, options: Options, plan: Plan, loop: SimLoop, **parts: Any) -> None:
        self.plan = plan
        self.database = Database()
        self.inboxes: list[Machine] = []
        self.applied = 0  # effects of handlers, once it is over
        self.secrets_known: list[str] = []  # as the receiver's configuration has them, the newest first
        self.versions_known = ["1"]
        super().__init__(options, loop, **parts)
        self.tempers = Tempers(plan, self.seed.stream("tempers"))
        self.oracle = Oracle(plan, self.database, self.book.find)
        self.inboxes += [self._inbox(slot) for slot in range(plan.processes)]
        self.clerks = Clerks(self.inboxes, self.seed.stream("clerks"), self.trace, self.book.find)

    async def run(self) -> None:
        try:
            await super().run()
            for machine in self.inboxes:
                await machine.stop()
            self.oracle.judge(self.book.events)
            self.check()
        finally:
            self.applied = self.database.count("select count(*) from effects")
            self.database.close()

    async def settle_in(self) -> None:
        await super().settle_in()
        (secret,) = self.secrets[self.receivers[0].name]
        self.secrets_known = [_text(secret)]

    def _publishers(self) -> Publishers:
        return Storytellers(self)

    def _befall(self, publishers: Publishers) -> list[Any]:
        return [
            *(machine.live() for machine in self.inboxes),
            *super()._befall(publishers),
            self._inbox_blows(),
            self._acts(),
            *(self._rotate(one) for one in self.plan.rotations),
            *(self._echo(one) for one in self.plan.echoes),
        ]

    # -- the receiver's half -------------------------------------------------------------------------------------

    def _receiver(self, number: int, customer: Customer) -> Receiver:
        plain = super()._receiver(number, customer)
        return Door(
            customer.host,
            self.loop,
            self.seed.stream(f"receiver {number}"),
            machines=lambda: self.inboxes,
            answered=lambda event, body, status: self.oracle.answered(event, body, status),
            mood=plain.mood,
            verify=plain.verify,
            tell=plain.tell,
        )

    @property
    def door(self) -> Door:
        (door,) = self.receivers
        assert isinstance(door, Door)
        return door

    def _inbox(self, slot: int) -> Machine:
        return Machine(
            slot,
            loop=self.loop,
            clock=SimClock(self.loop, offset_ms=self.plan.offsets_ms[slot]),
            trace=self.trace,
            build=self._application,
            gone=self._inbox_gone,
            find=self.book.find,
            kind="inbox",
        )

    async def _application(self, machine: Machine, process: Process) -> Application:
        store = SimStore(
            self.database.store,
            process=process,
            loop=self.loop,
            chance=self.seed.stream(f"database {process.name}"),
            faults=self.plan.database,
            trace=self.trace,
            kill=machine.kill,
            halt=lambda seconds: self.begin(self.strike(machine, Blow(0.0, "freeze", seconds=seconds))),
        )
        entropy = SimEntropy(self.seed.stream(f"entropy {process.name}"))
        source = source_of(self.secrets_known, self.versions_known)
        parts = (store, self.tempers, machine.clock, entropy, self.trace)
        return Application(self.plan, source, self._rules(process), *parts)

    def _rules(self, process: Process) -> Rules:
        """The rules of a process: where there are several, one may be of another version, whose leases are longer."""
        rules, chance = self.plan.rules, self.seed.stream(f"lease {process.name}")
        if len(self.inboxes) > 1 and chance.random() < LONG_LEASE_SHARE:
            return structs.replace(rules, lease_ms=LEASES * rules.lease_ms)
        return rules

    async def _inbox_gone(self, machine: Machine, process: Process, power: bool) -> None:
        self.network.cut(process, power=power)
        if not machine.leaving:
            self.trace.fired("inbox-crash")

    async def _gone(self, machine: Machine, process: Process, power: bool) -> None:
        await super()._gone(machine, process, power)
        if not machine.leaving:
            self.trace.fired("sender-crash")

    # -- what befalls it -----------------------------------------------------------------------------------------

    async def _inbox_blows(self) -> None:
        for blow in self.plan.blows:
            await self.until(self.began + blow.at)
            machine = self.inboxes[blow.which % len(self.inboxes)]
            self.trace.note(f"inbox-{blow.what}", f"{machine.slot} {blow.call}")
            if blow.what == "death":
                self.plan.database.dies[blow.call] = blow.steps
            elif blow.what == "halt":
                self.plan.database.halts[blow.call] = blow.seconds
            else:
                self.begin(self.strike(machine, blow))

    async def _acts(self) -> None:
        for act in self.plan.acts:
            await self.until(self.began + act.at)
            if act.what == "decide":
                await self.clerks.decide(STRICT_SHARE if self.plan.undo else REJECT_SHARE)
            elif act.what == "release":
                if await self.clerks.release(act.wanted["document"]):
                    self.oracle.promised.add(act.wanted["document"])
            else:
                await self.clerks.replay(act.wanted)

    async def _rotate(self, rotation: Rotation) -> None:
        await self.until(self.began + rotation.at)
        self.trace.note("inbox-rotation")
        try:
            with self.checkers.hastening(self.endpoints[0], self.loop.time):
                secret: str = await self.a_machine().call(
                    lambda server: server.rotate_secret(self.endpoints[0], rotation.overlap_s)
                )
        except (ProcessDied, LedgerError, Problem):
            # Nobody was told whether it took place: requests may be signed with a secret that nobody knows.
            configuration = await read_all(self._open_ledger(self))
            self.secrets[self.door.name] = [one.material for one in configuration.secrets]
            return
        self.secrets[self.door.name].append(signature.read_secret(secret)[1])
        await self.until(min(self.loop.time() + rotation.adopt_s, self.began + self.options.storm_s))
        self.secrets_known = [secret, *self.secrets_known]
        await self._deploy()

    async def _deploy(self) -> None:
        """Every process starts anew with what the configuration says, one after the other."""
        for machine in self.inboxes:
            if machine.up:
                await self.strike(machine, Blow(0.0, "stop", seconds=0.1))

    async def _echo(self, echo: Echo) -> None:
        await self.until(self.began + echo.at)
        if not self.door.remembered:
            return
        request = self.door.remembered[int(echo.which * len(self.door.remembered))]
        self.trace.note("inbox-forgery" if echo.tampered else "inbox-echo", request.headers["webhook-id"])
        for _ in range(echo.times):
            self.begin(self._say_again(request, tampered=echo.tampered))

    async def _say_again(self, request: Any, *, tampered: bool) -> None:
        try:
            status = await self.door.echo(request, tampered=tampered)
        except ProcessDied:
            return
        if tampered:
            self.oracle.forged(request.headers["webhook-id"], status)

    async def _mend(self) -> None:
        await super()._mend()
        self.tempers.mend()
        faults, calm = self.plan.database, Faults()
        for name in Faults.__struct_fields__:
            setattr(faults, name, getattr(calm, name))
        for machine in self.inboxes:
            machine.clock.put_right()
            if machine.process is not None:
                machine.process.deadline_step = None
                if machine.process.frozen:
                    self.loop.thaw(machine.process)
            machine.let_up()
        self.secrets_known = [_text(secret) for secret in reversed(self.secrets[self.door.name])]
        self.versions_known = ["1", "2"]
        await self._deploy()

    # -- coming to rest ------------------------------------------------------------------------------------------

    async def _come_to_rest(self, publishers: Publishers) -> None:
        await super()._come_to_rest(publishers)
        await self._deliver()
        await self._process()

    async def _deliver(self) -> None:
        """People send again what was given up or put off, until the customer has everything."""
        deadline = self.loop.time() + DELIVER_S
        while left := self._undelivered():
            if self.loop.time() > deadline:
                self.book.find(f"{len(left)} events are not delivered {DELIVER_S:.0f} s after the calm")
            self.check()
            await self._order(lambda server: server.change_endpoint(self.endpoints[0], {"status": "active"}))
            for row in left:
                await self._order(partial(_resend, row))
            await self.until(self.loop.time() + SENDER_ROUNDS_S)

    async def _order(self, order: Callable[[Any], Any]) -> None:
        try:
            await self.a_machine().call(order)
        except (ProcessDied, LedgerError, Problem) as error:
            self.trace.note("answer", repr(error))

    def _undelivered(self) -> list[bytes]:
        """The newest delivery of every event that no delivery of has arrived."""
        newest = {row.event: row for row in self.book.rows.values()}
        done = {row.event for row in self.book.rows.values() if row.end == "delivered"}
        return [row.id for event, row in newest.items() if event not in done]

    async def _process(self) -> None:
        """People let everything that waits for them go on, until nothing does."""
        deadline, strict = self.loop.time() + PROCESS_S, STRICT_ROUNDS if self.plan.undo else 0
        while True:
            patience = self.loop.time() + PATIENCE_S
            while self.oracle.open() and self.loop.time() < patience:
                await self.until(self.loop.time() + LOOK_S)
            unfinished = self.oracle.unfinished()
            if not unfinished and not self.oracle.open():
                return
            if self.loop.time() > deadline:
                self.book.find(
                    f"{PROCESS_S:.0f} s after everything was delivered, runs are {unfinished}, and {self.oracle.open()} move"
                )
            self.check()
            await self.clerks.unpark()
            await self.clerks.decide(STRICT_SHARE if strict > 0 else 0.0)
            strict -= 1
            for state in ("dead", "rejected"):
                if state in unfinished:
                    await self.clerks.replay({"state": state})
            await self.until(self.loop.time() + LOOK_S)


def _text(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


async def _resend(row: bytes, server: Any) -> None:
    await server.resend(row)


class Storytellers(Publishers):
    """They publish the plan's events, each under a key or an id, so that each is one event however often it is said."""

    def _compose(
        self, number: int, at: float, tenant: str, event_type: str, size: int
    ) -> tuple[list[EventIn], list[str | None]]:
        world = self._world
        assert isinstance(world, InboxWorld)
        one = world.plan.given[number]
        own_id = self._chance.random() < 0.3 and not world.options.has("steps", "skew")
        event = EventIn(
            tenant=tenant,
            type=one.type,
            data=json.dumps({"key": one.key, "signer": one.line.signer if one.line else None}).encode(),
            id=ids.uuid7(EPOCH_MS + int(at * 1000), self._chance.randbytes(10)) if own_id else None,
            subject=one.document,
            sequence=one.sequence,
            schema_version=one.schema,
            workflow_version=one.line.version if one.line else None,
        )
        return [event], [None if own_id else one.key]
