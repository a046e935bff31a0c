"""A world: machines on one ledger, customers on one network, publishers who insist, and what befalls them.

Two phases. In the *storm* the faults of the seed strike: processes die at a step or at a call of the
ledger, machines freeze, clocks are set, storage is late, away or silent, receivers change their moods,
people pause, delete, resend. In the *calm* all is mended and the world must come to rest: everything
finished, or waiting for a time to come, or parked for a reason that still holds. Then every machine is
stopped gracefully, and the ledger is compared with what the world saw.
"""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from lab.sim import befalling, beside
from lab.sim.backlog import ENDED_S, pile_up
from lab.sim.book import Book
from lab.sim.breaker_plans import WINDOWS
from lab.sim.broker import SimBroker
from lab.sim.checkers import Checkers, Sender
from lab.sim.clock import EPOCH_MS, SimClock
from lab.sim.crowd import Passing
from lab.sim.entropy import Seed
from lab.sim.genuine import is_genuine
from lab.sim.health import SimHealth
from lab.sim.known import breakers_behind, known_configuration
from lab.sim.ledger import SimLedger, Storage
from lab.sim.loop import Process, SimLoop
from lab.sim.network import SimNetwork
from lab.sim.node import Machine
from lab.sim.orders import Blow
from lab.sim.people import People
from lab.sim.publishers import Publishers
from lab.sim.receivers import Mood, Receiver
from lab.sim.resolver import Names
from lab.sim.swarm import Customer, Options
from lab.sim.trace import Trace
from lab.sim.verdicts import Verdicts
from lab.sim.wakeups import SimWakeups
from surehook.core import ids
from surehook.core.model import Endpoint, Secret, Tenant

NETWORK = "198.51.100.0/24"  # where the customers live (RFC 5737); allowed, because the guard refuses it
REST_MS = 60_000  # what has been due for longer than this at the end of the calm does not move
LOOK_S = 5.0  # between looks whether the world has come to rest

Assemble = Callable[["World", Machine, Process, Any], Any]
OpenLedger = Callable[["World"], Any]


class Finding(AssertionError):
    """Something that must never be was seen. The sentence says what."""


class World:
    """Everything of one run. `open_ledger` gives the storage a process starts on, `assemble` puts a server together."""

    def __init__(
        self, options: Options, loop: SimLoop, *, open_ledger: OpenLedger, assemble: Assemble
    ) -> None:
        self.options = options
        self.loop = loop
        self.seed = Seed(options.seed)
        self.trace = Trace(loop)
        self.calm_from = self.began = loop.time()  # when the last blow was over
        self.book = Book(loop.time, memory_bytes=options.engine.get("memory_bytes"), steps=lambda: loop.steps)
        self.book.on_finding = self.trace.stop
        self.checkers = Checkers(self.book)
        self.checkers.began, self.checkers.stalls = self.began, None if options.broker else options.stalls
        self.passing = Passing(self.book.find, options.engine, beside.AT_ONCE)
        self.verdicts = Verdicts(self.book.find, time=loop.time, sole=options.nodes == 1)
        befalling.freeze_probes(self)
        self.network = SimNetwork(loop, self.seed.stream("network"))
        self.names = Names()
        self.clock = SimClock(loop)  # the true time; that of a ledger which several machines share
        self.ears: list[SimWakeups] = []  # of all processes
        self.storage = Storage()
        self.broker = (
            None
            if options.broker is None
            else SimBroker(loop, self.seed.stream("broker"), options.broker.trouble)
        )
        self.health: SimHealth | None = None
        if options.health is not None:
            self.health = SimHealth(
                loop, self.seed.stream("health"), now=self.clock.now, find=self.book.find, trace=self.trace
            )
            self.checkers.health = self.health
        self.endpoints: list[bytes] = []  # by customer
        self.secrets: dict[str, list[bytes]] = {}  # by host
        self.receivers = [
            self._receiver(number, customer) for number, customer in enumerate(options.customers)
        ]
        self.machines = [self._machine(slot) for slot in range(options.nodes)]
        self._open_ledger = open_ledger
        self._assemble = assemble
        self.ledgers: dict[str, SimLedger] = {}  # by process
        self.homes: dict[bytes, Process] = {}  # of each node
        self.chance = self.seed.stream("world")
        self._tasks: list[asyncio.Task[None]] = []

    # -- the story -------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Storm, calm, stop. Raises Finding."""
        await self.settle_in()
        publishers = self._publishers()
        for machine in self.machines:
            self.begin(machine.live())
        for work in self._befall(publishers):
            self.begin(work)
        await self.until(self.began + self.options.storm_s)
        await self._mend()
        await self._come_to_rest(publishers)
        for machine in self.machines:
            await machine.stop()
        self.check()
        ledger = await self.fresh_ledger()
        await self.checkers.compare(ledger)
        self.checkers.settle()
        if not self.options.has("steps"):
            self.checkers.settle_events()
        self.check()

    def _publishers(self) -> Publishers:
        return Publishers(self)

    def _befall(self, publishers: Publishers) -> list[Any]:
        """Coroutines of the storm: publishers, people, moods, blows and whatever else befalls the world."""
        return [
            publishers.run(), People(self).run(), self._moods(), self._blows(), *befalling.befall(self),
        ]  # fmt: skip

    async def settle_in(self) -> None:
        """Tenants, endpoints and receivers, written before anybody starts."""
        ledger = await self.fresh_ledger()
        publishing = {tenant for _, tenant, *_ in self.options.publishes}
        for tenant in sorted(publishing | {customer.tenant for customer in self.options.customers}):
            await ledger.add_tenant(Tenant(id=tenant, name=tenant, strict=False, created_at=EPOCH_MS))
        chance = self.seed.stream("endpoints")
        for number, customer in enumerate(self.options.customers):
            endpoint_id = ids.uuid7(EPOCH_MS + number, chance.randbytes(10))
            secret = chance.randbytes(32)
            scheme = "https" if customer.port == 443 else "http"
            endpoint = Endpoint(
                id=endpoint_id,
                tenant=customer.tenant,
                url=f"{scheme}://{customer.host}/hook?id={number}",
                event_types=customer.event_types,
                policy=None if customer.policy is None else json.dumps(customer.policy).encode(),
                status="active",
                reason=None,
                failure_count=0,
                order="none",
                headers={},
                description=None,
                created_at=EPOCH_MS,
                updated_at=EPOCH_MS,
            )
            await ledger.add_endpoint(
                endpoint,
                Secret(
                    id=ids.uuid7(EPOCH_MS, chance.randbytes(10)),
                    endpoint=endpoint_id,
                    kind="v1",
                    material=secret,
                    created_at=EPOCH_MS,
                    expires_at=None,
                ),
            )
            self.endpoints.append(endpoint_id)
            self.secrets[customer.host] = [secret]
            self.names.addresses[customer.host] = (customer.address,)
            self.network.listen(customer.address, customer.port, self.receivers[number])
            self.checkers.know(endpoint_id, customer.tenant, endpoint.url, customer.policy)
            self.verdicts.know(endpoint, WINDOWS.get(customer.tenant))
        await pile_up(self, ledger)
        await self.close_ledger(ledger)

    async def _come_to_rest(self, publishers: Publishers) -> None:
        """Wait until nothing is left to do, at most `calm_s`. What is left then is a finding."""
        while True:
            await asyncio.sleep(LOOK_S)
            deadline = self.calm_from + self.options.calm_s
            self.check()
            if (configuration := await known_configuration(self.machines)) is None:
                continue
            statuses: dict[bytes, str] = {each.id: each.status for each in configuration.endpoints}
            now = min(self._clock_of(machine).now() for machine in self.machines)
            left_ms = int((deadline - self.loop.time()) * 1000)
            walked = all(job.state != "running" for job in self.book.jobs.values())
            aged = self.checkers.aged(now, over=self.loop.time() > self.calm_from + ENDED_S)
            served = publishers.done and all(machine.server is not None for machine in self.machines)
            # What will be due within the calm is waited for; what lies beyond it may stay.
            behind = breakers_behind(self.book.breakers.values(), self.machines)
            at_rest = not behind and not self.checkers.restless(now + max(0, left_ms), statuses)
            if served and walked and not aged and at_rest:
                return
            if self.loop.time() > deadline:
                for sentence in [*behind, *self.checkers.restless(now - REST_MS, statuses)]:
                    self.book.find(f"{self.options.calm_s:.0f} s after all was mended: {sentence}")
                if not served:
                    self.book.find("a publisher is never answered, or a machine never starts")
                if not walked:
                    self.book.find("a replay stands still, and nobody walks it")
                self.check()
                return

    # -- faults ----------------------------------------------------------------------------------------

    async def _blows(self) -> None:
        for blow in self.options.blows:
            await self.until(self.began + blow.at)
            machine = self.machines[blow.which % len(self.machines)]
            self.trace.note(f"blow-{blow.what}", f"machine {machine.slot}")
            self.begin(self.strike(machine, blow))

    async def strike(self, machine: Machine, blow: Blow) -> None:
        if (process := machine.process) is None or not process.alive:
            return
        if blow.what in ("kill", "power"):
            machine.power = blow.what == "power"
            process.deadline_step = process.steps + blow.steps
        elif blow.what == "ledger_death":
            when, _, call = blow.call.partition(" ")
            plan = self.storage.dies_before if when == "before" else self.storage.dies_after
            plan[call] = blow.steps
        elif blow.what == "stop":
            await machine.stop()
            await asyncio.sleep(blow.seconds)
            machine.let_up()
        elif blow.what == "freeze" and not machine.leaving:
            self.loop.freeze(process)
            await asyncio.sleep(blow.seconds)
            if process.alive:
                self.loop.thaw(process)
            self.calm_from = max(self.calm_from, self.loop.time())  # a storm's last blow may outlast it
        elif blow.what == "step":
            machine.clock.step(int(blow.seconds * 1000))
            await asyncio.sleep(0)

    async def _moods(self) -> None:
        changes = [
            (at, number, mood)
            for number, customer in enumerate(self.options.customers)
            for at, mood in customer.moods
            if at > 0
        ]
        for at, number, mood in sorted(changes, key=lambda change: change[:2]):
            await self.until(self.began + at)
            self.receivers[number].mood = mood
            self.trace.note("mood", f"{self.receivers[number].name} {mood.treatment}")

    async def _mend(self) -> None:
        """The storm is over: every fault is gone, every machine is started, every endpoint is active."""
        self.trace.note("mend")
        self.storage.mend()
        befalling.mend(self)
        for receiver in self.receivers:
            receiver.mood = Mood()
        for machine in self.machines:
            machine.clock.put_right()
            if machine.process is not None:
                machine.process.deadline_step = None
                if machine.process.frozen:
                    self.loop.thaw(machine.process)
            machine.let_up()
        self.begin(People(self).put_right())

    # -- parts -----------------------------------------------------------------------------------------

    def _receiver(self, number: int, customer: Customer) -> Receiver:
        return Receiver(
            customer.host,
            self.loop,
            self.seed.stream(f"receiver {number}"),
            mood=customer.moods[0][1],
            verify=lambda headers, body, now: is_genuine(self._secrets_of(number, customer), headers, body),
            tell=self._seen,
        )

    def _secrets_of(self, number: int, customer: Customer) -> list[bytes]:
        return [*self.secrets[customer.host], *self.book.rotated.get(self.endpoints[number], ())]

    def _seen(self, seen: Any) -> None:
        self.trace.note(
            "request", f"{seen.sender} {seen.receiver} {seen.delivery[-6:]}/{seen.attempt} {seen.treated}"
        )
        self.checkers.arrived(seen)

    def _machine(self, slot: int) -> Machine:
        clock = SimClock(
            self.loop,
            offset_ms=self.options.clock_offset_ms * (slot == 0),
            drift_ppm=self.options.clock_drift_ppm,
        )
        return Machine(
            slot,
            loop=self.loop,
            clock=clock,
            trace=self.trace,
            build=self._build,
            gone=self._gone,
            find=self.book.find,
        )

    async def _build(self, machine: Machine, process: Process) -> Any:
        """Inside a fresh process: its ledger, and the server on it."""
        ledger = SimLedger(
            self._open_ledger(self),
            process=process,
            loop=self.loop,
            chance=self.seed.stream(f"storage {process.name}"),
            storage=self.storage,
            book=self.book,
            trace=self.trace,
            verdicts=self.verdicts,
            kill=lambda why: machine.kill(why),
            leaving=lambda: machine.leaving,
            homes=self.homes,
            honest=not self.options.has("storage_away", "storage_unknown"),
            wrote=self.passing.wrote,
            trying=self.passing.trying,
            late=self.seed.stream(f"late word {process.name}") if self.options.nodes > 1 else None,
        )
        self.ledgers[process.name] = ledger
        clock = self._clock_of(machine)
        process.wall = clock.now
        self.checkers.senders[process.name] = Sender(process.name, ledger.identities, clock)
        self.checkers.several_nodes = len(self.machines) > 1
        return self._assemble(self, machine, process, ledger)

    async def _gone(self, machine: Machine, process: Process, power: bool) -> None:
        """Do as the operating system does when a process is gone: close sockets and files."""
        self.network.cut(process, power=power)
        if (ledger := self.ledgers.get(process.name)) is not None:
            await self.close_ledger(ledger.inner)

    async def fresh_ledger(self) -> Any:
        """A handle of the world's own on what is stored."""
        ledger = self._open_ledger(self)
        await ledger.open(now=EPOCH_MS)
        return ledger

    async def close_ledger(self, ledger: Any) -> None:
        await ledger.close()

    def a_machine(self) -> Machine:
        """One that takes events and orders."""
        doors = [machine for machine in self.machines if self.options.roles[machine.slot] in ("all", "api")]
        return self.chance.choice(doors)

    def _clock_of(self, machine: Machine) -> SimClock:
        """The clock that due times are written by and judged by."""
        return machine.clock if self.options.nodes == 1 else self.clock

    # -- help ------------------------------------------------------------------------------------------

    def begin(self, work: Any) -> None:
        """Let the world itself do something meanwhile."""
        self._tasks.append(self.loop.spawn(None, self._guarded(work)))

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Finding:
            raise
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            self.book.find(f"the world itself failed: {error!r} in {where.name}, line {where.lineno}")
            raise

    async def until(self, at: float) -> None:
        while (left := at - self.loop.time()) > 0:
            await asyncio.sleep(min(left, LOOK_S))
            self.check()

    def check(self) -> None:
        """Raise the first Finding, if there is one."""
        for receiver in self.receivers:
            for sentence in receiver.findings:
                self.book.find(sentence)
            receiver.findings.clear()
        for failure in self.loop.failures:
            culprit = failure.get("task") or failure.get("future") or failure.get("handle")
            self.book.find(
                f"unhandled: {failure.get('message')}: {failure.get('exception')!r} in {culprit!r}"
            )
        self.loop.failures.clear()
        if self.book.findings:
            raise Finding(self.book.findings[0])
