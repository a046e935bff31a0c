"""A whole world from one seed: who there is, what goes wrong, how often, and which bounds are how near.

Each seed draws which faults exist at all, so that some worlds are all about one of them; one seed in ten
has none. Bounds of the engine are drawn as well, small ones preferred: the branch that is taken every ten
thousandth delivery in production is taken every tenth here.
"""

from __future__ import annotations

import random
from typing import Any

from msgspec import Struct, field

from lab.sim import beside, breaker_plans, configuring, crowd, lane_plans, owed, stalls, verdict_plans
from lab.sim.backlog import Backlog, draw_backlog
from lab.sim.broker import Trouble
from lab.sim.entropy import Seed
from lab.sim.orders import Blow, Order
from lab.sim.policies import POLICIES
from lab.sim.receivers import TREATMENTS, Mood
from surehook.core.model import FIRST, RETRY, Lane

FAULTS = (
    "kills", "power", "ledger_deaths", "stops", "freezes", "steps", "storage_late", "storage_away",
    "storage_unknown", "moods", "resets", "silence", "pieces", "dns", "switches", "requests", "skew",
)  # fmt: skip


class Customer(Struct):
    """One endpoint of one tenant, and its receiver's moods as (from second, mood)."""

    tenant: str
    host: str
    address: str
    port: int
    policy: Any
    event_types: tuple[str, ...]
    moods: list[tuple[float, Mood]]
    dns_trouble: list[tuple[float, float]] = field(default_factory=list)  # from, until


class BrokerPlan(Struct, frozen=True):
    """Faults of the broker: shares of messages, and acts as (instant, what, lane)."""

    trouble: Trouble
    acts: tuple[tuple[float, str, Lane], ...]


# A name and a boot id, which ends in the space of process numbers, for each machine.
APART = tuple((f"machine{slot}", f"boot{slot} pid:[1]") for slot in range(4))
# Cloned images, a fixed `hostname:`.
NAMESAKES = tuple(("machine", f"boot{slot} pid:[1]") for slot in range(4))
CONTAINERS = tuple(("machine", f"boot pid:[{slot}]") for slot in range(4))  # of one host, with one name
UNKNOWN = (("machine", ""),) * 4  # a system that tells neither


class Options(Struct):
    """Everything a world is made from."""

    seed: int | str
    faults: tuple[str, ...]
    nodes: int
    customers: list[Customer]
    publishes: list[tuple[float, str, str, int]]  # instant, tenant, event type, events in the request
    orders: list[Order]
    blows: list[Blow]
    storm_s: float  # phase one: faults strike
    calm_s: float  # phase two: all is mended, everything must come to rest
    engine: dict[str, Any]
    late_s: tuple[float, float] = (0.0, 0.001)
    stall_share: float = 0.0
    slow: tuple[str, ...] = ()  # calls that wait long for their turn, so that what is told of late differs
    unavailable_share: float = 0.0
    unknown_share: float = 0.0
    dns_fail_share: float = 0.0
    clock_offset_ms: int = 0
    clock_drift_ppm: float = 0.0
    broker: BrokerPlan | None = None  # ready work goes through a broker
    roles: tuple[str, ...] = ("all",) * 4  # of each machine: all, api, worker, first, retry
    places: tuple[tuple[str, str], ...] = APART  # of each machine: its host's name and boot id
    reads_away_share: float = 0.0  # of calls that only read
    configuring: configuring.Plan = ()  # changes that must hold everywhere at once
    backlog: Backlog | None = None  # many deliveries that reach their age together
    health: tuple[tuple[float, str], ...] | None = None  # shared; to which this happens at an instant
    stalls: stalls.Stalls | None = None  # commits stand still, and nothing else goes wrong
    probe_freezes: int = 0  # so many times a machine freezes, and is evicted, while its probe is under way
    dial_freeze_s: float | None = None  # so long after it first dials a certain receiver, a machine freezes

    def has(self, *faults: str) -> bool:
        """True where any of these faults exists in this world."""
        return any(fault in self.faults for fault in faults)


def draw(seed: int | str, *, nodes: int = 1) -> Options:
    """The world of a seed. `nodes` is how many processes may share the ledger at most."""
    chance = Seed(seed).stream("swarm")
    quiet = chance.random() < 0.1
    faults = () if quiet else tuple(fault for fault in FAULTS if chance.random() < 0.35)
    storm_s = chance.choice((20.0, 40.0, 90.0, 200.0))
    customers = _customers(chance, faults, storm_s)
    publishes = _publishes(chance, customers, storm_s)
    machines = 1 if nodes == 1 or chance.random() < 0.5 else chance.randint(2, nodes)
    options = Options(
        seed=seed,
        faults=faults,
        nodes=machines,
        roles=_roles(seed, machines),
        places=Seed(seed).stream("places").choice((APART, APART, NAMESAKES, CONTAINERS, UNKNOWN)),
        reads_away_share=reads_away(Seed(seed).stream("reads away")) if "storage_away" in faults else 0.0,
        backlog=draw_backlog(seed, several=machines > 1),
        health=_health(Seed(seed).stream("health plan"), machines, storm_s),
        customers=customers,
        publishes=publishes,
        orders=sorted(
            _orders(chance, faults, customers, storm_s) + _replays(seed, faults, customers, storm_s),
            key=lambda order: order.at,
        ),
        blows=blows(chance, faults, storm_s, [at for at, *_ in publishes]),
        storm_s=storm_s,
        calm_s=700.0,
        engine=engine(chance),
        late_s=(0.0, chance.choice((0.0, 0.05, 0.4)) if "storage_late" in faults else 0.001),
        stall_share=0.01 if "storage_late" in faults else 0.0,
        slow=slow(Seed(seed).stream("slow calls")) if "storage_late" in faults else (),
        unavailable_share=chance.choice((0.02, 0.1, 0.3)) if "storage_away" in faults else 0.0,
        unknown_share=chance.choice((0.05, 0.2)) if "storage_unknown" in faults else 0.0,
        dns_fail_share=0.05 if "dns" in faults else 0.0,
        clock_offset_ms=chance.randint(-3_600_000, 3_600_000) if "skew" in faults else 0,
        clock_drift_ppm=chance.uniform(-300, 300) if "skew" in faults else 0.0,
    )
    _crowded(options)
    verdict_plans.add(options, _join)
    breaker_plans.release(options)
    lane_plans.add(options)
    options.configuring, slow_calls = configuring.draw(Seed(seed).stream("configuring"), storm_s)
    options.slow += slow_calls
    breaker_plans.jump(options, join=_join)
    breaker_plans.die(options, join=_join)
    _indebted(options)
    stalls.add(options, _join)
    beside.add(options, _join)
    return options


def _crowded(options: Options) -> None:
    """Some worlds have a crowd at the door beside everything else, of a stream of its own."""
    crowded = crowd.draw(Seed(options.seed).stream("crowd"), options.storm_s)
    if crowded is not None:
        _join(options, crowd.BUSY, crowded.endpoints)
        options.publishes = sorted(options.publishes + crowded.publishes)
        options.engine.update(crowded.engine)


def _indebted(options: Options) -> None:
    """Other worlds have nothing but a tenant that is owed much, and its neighbour."""
    debt = owed.draw(Seed(options.seed).stream("owed"), options.storm_s)
    if debt is not None and all(customer.tenant != crowd.BUSY for customer in options.customers):
        owed.be_calm(options)
        _join(options, owed.OWED, debt.endpoints, Mood(answer_s=debt.answer_s))
        _join(options, owed.NEAR, 1)
        options.publishes = debt.publishes
        options.engine.update(debt.engine)


def _join(
    options: Options, tenant: str, endpoints: int, mood: Mood | None = None, *, policy: Any = None
) -> None:
    """One more tenant with endpoints that want everything."""
    first = len(options.customers)
    options.customers += [
        Customer(
            tenant=tenant,
            host=f"r{number}.example",
            address=f"198.51.100.{number + 1}",
            port=80,
            policy=policy,
            event_types=("*",),
            moods=[(0.0, mood or Mood())],
        )
        for number in range(first, first + endpoints)
    ]


def _roles(seed: int | str, machines: int) -> tuple[str, ...]:
    """Half of the worlds have machines alike. In the others they share the work; every lane has somebody."""
    chance = Seed(seed).stream("roles")
    if machines == 1 or chance.random() < 0.5:
        return ("all",) * machines
    kinds = [["api", "worker"], ["all", "api"], ["all", "worker"], ["all", "first"], ["all", "retry"]]
    if machines >= 3:
        kinds += [["api", "first", "retry"]] * 10  # the most that can go wrong
    roles = chance.choice(kinds)
    roles = roles + [chance.choice(roles) for _ in range(machines - len(roles))]
    chance.shuffle(roles)
    return tuple(roles)


def slow(chance: random.Random) -> tuple[str, ...]:
    """Half of the late ledgers have one pool that is busier than the others."""
    if chance.random() < 0.5:
        return ()
    return chance.choice((("record",), ("claim", "unpark"), ("accept",), ("park",), ("held", "held_count")))


def reads_away(chance: random.Random) -> float:
    """Half of the ledgers that are away at times are so for those who only read, too."""
    return chance.choice((0.0, 0.0, 0.02, 0.2))


def _health(chance: random.Random, machines: int, storm_s: float) -> tuple[tuple[float, str], ...] | None:
    """Two worlds of three with several machines share health; in half of them it is away for a while, or forgets."""
    if machines == 1 or chance.random() < 0.33:
        return None
    count = chance.choice((0, 0, 0, 1, 3, 6))
    acts = [(chance.uniform(0, storm_s), chance.choice(("away", "back", "flush"))) for _ in range(count)]
    return tuple(sorted(acts))


def draw_broker(seed: int | str, storm_s: float) -> BrokerPlan:
    """A broker's fate, of a stream of its own: worlds without one stay what they are."""
    chance = Seed(seed).stream("broker plan")
    shares = (0.0, 0.0, 0.05, 0.3)
    acts = [
        (
            chance.uniform(0, storm_s),
            chance.choice(("cut", "purge", "delete", "away", "back")),
            chance.choice((FIRST, RETRY)),
        )
        for _ in range(chance.randint(0, 8))
    ]
    trouble = Trouble(
        lost=chance.choice(shares),
        twice=chance.choice(shares),
        swapped=chance.choice(shares),
        unconfirmed=chance.choice(shares),
    )
    return BrokerPlan(trouble, tuple(sorted(acts + _standstills(seed, storm_s))))


def _standstills(seed: int | str, storm_s: float) -> list[tuple[float, str, Lane]]:
    """Half of the brokers stand still for a while, without a connection that breaks."""
    chance = Seed(seed).stream("broker stands still")
    acts: list[tuple[float, str, Lane]] = []
    for _ in range(chance.choice((0, 0, 1, 2))):
        begin, lane = chance.uniform(0, storm_s), chance.choice((FIRST, RETRY))
        acts.append((begin, chance.choice(("freeze", "alarm")), lane))
        acts.append((begin + chance.choice((5.0, 20.0, 60.0)), "back", lane))
    return acts


def _customers(chance: random.Random, faults: tuple[str, ...], storm_s: float) -> list[Customer]:
    customers = []
    for number in range(chance.randint(1, 6)):
        moods = [(0.0, mood(chance, faults))]
        while "moods" in faults and chance.random() < 0.5:
            moods.append((chance.uniform(0, storm_s), mood(chance, faults)))
        trouble = []
        if "dns" in faults and chance.random() < 0.3:
            begin = chance.uniform(0, storm_s)
            trouble.append((begin, begin + chance.uniform(1, 30)))
        customers.append(
            Customer(
                tenant=f"t{chance.randint(1, 2)}",
                host=f"r{number}.example",
                address=f"198.51.100.{number + 1}",
                port=443 if chance.random() < 0.7 else 80,
                policy=chance.choice(POLICIES),
                event_types=chance.choice((("*",), ("document.*",), ("document.signed", "document.viewed"))),
                moods=sorted(moods, key=lambda entry: entry[0]),
                dns_trouble=trouble,
            )
        )
    return customers


def mood(chance: random.Random, faults: tuple[str, ...]) -> Mood:
    treatment = chance.choice(("healthy", "slow", *TREATMENTS)) if "moods" in faults else "healthy"
    slow = chance.choice(((0.5, 0.9), (1.1, 1.9), (2.5, 6.0)))
    return Mood(
        treatment=treatment,
        answer_s=slow if treatment == "slow" else (0.001, chance.choice((0.005, 0.05, 0.3))),
        flaw_share=chance.choice((0.1, 0.5, 1.0)),
        per_second=chance.randint(1, 10),
        retry_after=chance.choice(
            ("1", "3", "0", "-1", "soon", "1000000000", "Thu, 01 Jan 2026 00:02:00 GMT")
        ),
        reset_share=chance.choice((0.05, 0.3)) if "resets" in faults else 0.0,
        silent_share=chance.choice((0.02, 0.1)) if "silence" in faults else 0.0,
        connect_s=chance.choice((0.01, 0.01, 0.3, 1.5)) if "moods" in faults else 0.01,
        pieces="pieces" in faults,
    )


def _publishes(
    chance: random.Random, customers: list[Customer], storm_s: float
) -> list[tuple[float, str, str, int]]:
    tenants = sorted({customer.tenant for customer in customers})
    types = ("document.signed", "document.viewed", "document.sent", "invoice.paid")
    publishes = []
    for _ in range(chance.randint(1, 5)):  # bursts and trickles
        begin, count = chance.uniform(0, storm_s * 0.9), chance.randint(1, 40)
        spread = chance.choice((0.0, 0.05, 1.0, storm_s / 4))
        for _ in range(count):
            at = min(storm_s, begin + chance.random() * spread)
            size = 1 if chance.random() < 0.9 else chance.randint(2, 20)
            publishes.append((at, chance.choice(tenants), chance.choice(types), size))
    return sorted(publishes)


def _orders(
    chance: random.Random, faults: tuple[str, ...], customers: list[Customer], storm_s: float
) -> list[Order]:
    orders = []
    if "switches" in faults:
        for _ in range(chance.randint(1, 4)):
            what = chance.choice(("pause", "pause", "activate", "activate", "policy", "rotate", "delete"))
            orders.append(Order(chance.uniform(0, storm_s), what, chance.randrange(len(customers))))
    if "requests" in faults:
        for _ in range(chance.randint(1, 8)):
            what = chance.choice(("resend", "cancel"))
            orders.append(Order(chance.uniform(1, storm_s), what, chance.randrange(1 << 16)))
    return sorted(orders, key=lambda order: order.at)


def _replays(
    seed: int | str, faults: tuple[str, ...], customers: list[Customer], storm_s: float
) -> list[Order]:
    """Jobs over all that a tenant has, some of them at the same time."""
    chance = Seed(seed).stream("replays")
    if "requests" not in faults:
        return []
    count = chance.randint(0, 3)
    return [
        Order(chance.uniform(storm_s / 4, storm_s), "replay", chance.randrange(len(customers)))
        for _ in range(count)
    ]


DAYS_S = 9 * 86_400  # three such steps one way stay within retention: what age ends is not lost
LEDGER_CALLS = (
    "accept", "record", "claim", "unpark", "park", "evict", "enter", "beat", "free", "release", "mark_overdue",
)  # fmt: skip


def blows(chance: random.Random, faults: tuple[str, ...], storm_s: float, busy: list[float]) -> list[Blow]:
    """Half of them strike while something was just published: an idle process dies without a trace."""
    found: list[Blow] = []

    def strike(what: str, times: int, **details: Any) -> None:
        for _ in range(times):
            made = {key: value() for key, value in details.items()}
            at = (
                chance.choice(busy) + chance.uniform(0, 3)
                if chance.random() < 0.5
                else storm_s * chance.random()
            )
            found.append(Blow(min(at, storm_s), what, chance.randrange(4), **made))

    away = lambda: chance.choice((0.1, 1.0, 20.0))  # noqa: E731
    if "kills" in faults:
        strike("kill", chance.randint(1, 5), steps=lambda: chance.randrange(400), seconds=away)
    if "power" in faults:
        strike("power", chance.randint(1, 2), steps=lambda: chance.randrange(400), seconds=away)
    if "ledger_deaths" in faults:
        strike(
            "ledger_death",
            chance.randint(1, 4),
            steps=lambda: chance.randrange(6),
            seconds=away,
            call=lambda: chance.choice(("before ", "after ")) + chance.choice(LEDGER_CALLS),
        )
    if "stops" in faults:
        strike("stop", chance.randint(1, 3), seconds=away)
    if "freezes" in faults:
        strike("freeze", chance.randint(1, 2), seconds=lambda: chance.choice((2.0, 8.0, 16.0, 60.0)))
    if "steps" in faults:
        strike(
            "step",
            chance.randint(1, 3),
            seconds=lambda: chance.choice((-1, 1)) * chance.choice((1, 5, 60, 3600, DAYS_S)),
        )
    return sorted(found, key=lambda blow: blow.at)


def engine(chance: random.Random) -> dict[str, Any]:
    """Bounds of the engine, by the names of its settings."""
    memory = chance.choice((4, 20, 100, 5_000))
    return {
        "slots_first": chance.choice((1, 2, 8, 64)),
        "slots_retry": chance.choice((1, 2, 8, 64)),
        "endpoint_slots": chance.choice((1, 2, 8, 32)),
        "memory_deliveries": memory,
        "endpoint_share": min(memory, chance.choice((2, 10, 100))),
        "waiting_events": chance.choice((20, 1_000)),
        "accept_rows": chance.choice((1, 7, 100)),
        "record_rows": chance.choice((1, 7, 100)),
        "record_window_s": chance.choice((0.0, 0.005, 0.05)),
        "claim_rows": chance.choice((2, 10, 100)),
    }
