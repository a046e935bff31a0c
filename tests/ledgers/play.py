"""Any sequence of port calls, made up from what a model book holds at the moment.

`Play` draws from `pick` (a seed's or Hypothesis's), looks into a memory ledger to find rows that make sense
(and some that do not), and gives calls as values, so that they can be made on two books, or on a book that
loses power and afterwards on its model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from lab.ledger.ledger import MemoryLedger
from surehook.core.instants import DAY_MS, HOUR_MS
from surehook.core.model import (
    PARKED_REASONS,
    BreakerRow,
    Delivery,
    EndpointHealth,
    EventType,
    Settled,
)
from surehook.core.receipt import STAGES, word
from surehook.core.receipt_message import Said
from surehook.ports.ledger import ANY_SIZE, Incoming
from surehook.ports.reading import ReplayJob
from surehook.ports.receipts import PendingReceipt
from surehook.ports.registry import ApiKey

from .making import NOW, TENANT, Maker

Pick = Callable[[int], int]  # a number below the given one
KEYS = ("k1", "k2", "k3")
DIGESTS = (b"\x01" * 32, b"\x02" * 32)
LIMITS = (1, 2, 5, 100)


@dataclass(frozen=True)
class Call:
    """One call of a port: method, positional and keyword arguments."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)

    async def on(self, ledger: Any) -> Any:
        return await getattr(ledger, self.name)(*self.args, **self.kwargs)


class Play:
    """Calls that fit the model. The caller makes each on the model too, or knows that it was lost."""

    def __init__(
        self, model: MemoryLedger, pick: Pick, *, calls: Sequence[Callable[[Play], Call]] | None = None
    ) -> None:
        self.model = model
        self.make = Maker()
        self.pick = pick
        self._calls = CALLS if calls is None else calls
        self.now = NOW
        self._given: list[Incoming] = []

    def first_calls(self) -> list[Call]:
        """A tenant, an endpoint and a node."""
        return [Call("add_tenant", (self.make.tenant(),)), self.add_endpoint(), self.enter()]

    def next_call(self) -> Call:
        """Let some time pass, and draw a call."""
        self.now += self._one_of((0, 1, 250, 5_000, HOUR_MS))
        if not self.model.book.nodes and not self._chance(5):
            return self.enter()
        if len(self.model.book.endpoints) < 2 and not self._chance(5):
            return self.add_endpoint()
        return self._one_of(self._calls)(self)

    # -- drawing ----------------------------------------------------------------------------------------

    def _one_of(self, values: Sequence[Any]) -> Any:
        return values[self.pick(len(values))]

    def _chance(self, one_in: int) -> bool:
        return self.pick(one_in) == 0

    def _some(self, values: Sequence[Any], *, most: int) -> list[Any]:
        """Up to `most` different ones, in any order."""
        left = list(values)
        return [left.pop(self.pick(len(left))) for _ in range(min(len(left), self.pick(most + 1)))]

    def _node(self) -> bytes:
        """A node that is alive, or now and then one that is not."""
        alive = sorted(self.model.book.nodes)
        return self.make.id() if not alive or self._chance(20) else self._one_of(alive)

    def _endpoint(self) -> bytes:
        return self._one_of(sorted(self.model.book.endpoints) or [self.make.id()])

    def _rows(self, *, most: int, holder: bytes | None = None) -> list[Delivery]:
        """Some unfinished deliveries: those `holder` has, and now and then any, or one whose attempt has moved on."""
        book = self.model.book
        ids = sorted(book.rows)
        if holder is not None and not self._chance(10):
            ids = list(book.held[holder].ascending()) if holder in book.held else []
        found = [book.copy(book.rows[delivery]) for delivery in self._some(ids, most=most)]
        if found and self._chance(15):
            found[0] = structs.replace(found[0], attempt=found[0].attempt + 1)
        return found

    def _finished(self, *, most: int) -> list[Any]:
        return [
            self.model.book.stories[one] for one in self._some(sorted(self.model.book.stories), most=most)
        ]

    def _due(self) -> int:
        return self.now + self._one_of((-10, 0, 1, 60_000))

    # -- nodes ------------------------------------------------------------------------------------------

    def enter(self) -> Call:
        return Call("enter", (self.make.node(),), {"now": self.now})

    def beat(self) -> Call:
        return Call("beat", (self._node(), self.pick(1_000)), {"now": self.now})

    def evict(self) -> Call:
        node = self._node()
        judged = {node: self.model.book.beats.get(node, 0) - self.pick(2)} if self._chance(2) else None
        return Call("evict", ([node],), {"now": self.now, "judged": judged})

    def free(self) -> Call:
        node = self._node()
        return Call(
            "free", ([one.id for one in self._rows(most=3, holder=node)],), {"node": node, "now": self.now}
        )

    # -- the way in -------------------------------------------------------------------------------------

    def accept(self) -> Call:
        batch = [self._incoming() for _ in range(self.pick(4) + 1)]
        version = self.model.book.version - (1 if self._chance(20) else 0)
        return Call("accept", (batch,), {"node": self._node(), "version": version, "now": self.now})

    def _incoming(self) -> Incoming:
        endpoints = self._some(sorted(self.model.book.endpoints), most=3)
        event: dict[str, Any] = {
            "digest": self._one_of(DIGESTS),
            "subject": self._one_of((None, "doc_1", "doc_2")),
            "correlation_id": self._one_of((None, "c")),
            "body": b"x" * self._one_of((2, 300, 5_000)),
        }
        given = self._chance(3)
        if given and self._given and self._chance(2):
            event["id"] = self._one_of(self._given).event.id
        where: dict[str, Any] = self._one_of(
            ({"held": True}, {"held": True}, {}, {"parked": self._one_of(PARKED_REASONS)})
        )
        if self._chance(4):
            where["overdue_at"] = self._due()
        if self._chance(40):
            event["subject"] = "\udc00"
        key = self._one_of(KEYS) if self._chance(4) else None
        lane = self.pick(2)
        item = self.make.incoming(
            *endpoints, key=key, given=given, at=self.now, event=event, lane=lane, due_at=self._due(), **where
        )
        if given:
            self._given.append(item)
        return item

    # -- the way out ------------------------------------------------------------------------------------

    def claim(self) -> Call:
        wanted = {"node": self._node(), "limit": self._one_of(LIMITS), "due_by": self._due(), "now": self.now}
        return Call("claim", (self.pick(2),), wanted)

    def claim_ids(self) -> Call:
        ids = [one.id for one in self._rows(most=4)]
        size = self._one_of((1, 300, ANY_SIZE))
        return Call("claim_ids", (ids,), {"node": self._node(), "now": self.now, "size": size})

    def unpark(self) -> Call:
        wanted = {
            "node": self._node(),
            "limit": self._one_of(LIMITS),
            "now": self.now,
            "restart": self._chance(3),
        }
        return Call("unpark", (self._endpoint(), self._some(PARKED_REASONS, most=7)), wanted)

    def park(self) -> Call:
        node = self._node()
        return Call(
            "park",
            (self._rows(most=3, holder=node), self._one_of(PARKED_REASONS)),
            {"node": node, "now": self.now},
        )

    def release(self) -> Call:
        node = self._node()
        return Call("release", (self._rows(most=3, holder=node),), {"node": node, "now": self.now})

    def record(self) -> Call:
        node = self._node()
        settled = [self._settled(one) for one in self._rows(most=5, holder=node)]
        breaker = BreakerRow(
            TENANT,
            self._one_of("ab"),
            self._one_of(("open", "half_open", "closed")),
            "failures",
            self.now,
            self.now,
            1,
            2,
            self.now - self._one_of((0, 0, 1, HOUR_MS)),
        )
        named = {
            "node": node,
            "health": [self._health(one) for one in self._some(sorted(self.model.book.endpoints), most=2)],
            "breakers": [breaker] if self._chance(3) else [],
            "notices": [self.make.notice("breaker.opened", at=self.now)] if self._chance(5) else [],
            "now": self.now,
        }
        return Call("record", (settled,), named)

    def _settled(self, held: Delivery) -> Settled:
        make = self.make
        kind = self.pick(6)
        if kind == 0:
            awaited = self.now + self._one_of((0, 5_000, HOUR_MS)) if self._chance(2) else None
            return structs.replace(make.delivered(held, started_at=self.now), finalize_by=awaited)
        if kind == 1:
            dead = make.ended(held, "dead", outcome="gone", status=410, notices=(make.notice(at=self.now),))
            dead.request_headers = self._one_of((None, b'{"a":"b"}'))
            return dead
        if kind == 2:
            return make.ended(held, "dropped", outcome="timed_out", status=None, unknown=True)
        if kind == 3:
            return make.failed(
                held, due_at=self._due(), spared=self.pick(2), parked=self._one_of(PARKED_REASONS)
            )
        if kind == 4:
            return Settled(
                delivery=held, entry=None, lane=held.lane, number=held.attempt, due_at=held.due_at, parked="breaker",
                spared=held.spared,
            )  # fmt: skip
        return make.failed(held, due_at=self._due(), spared=held.spared)

    def _health(self, endpoint: bytes) -> EndpointHealth:
        forced: Any = ("failure", "exhausted") if self._chance(10) else (None, None)
        return EndpointHealth(endpoint, self._chance(3), self.pick(4), self._one_of((None, 3, 8)), *forced)

    # -- endings and house ------------------------------------------------------------------------------

    def end(self) -> Call:
        rows = self._rows(most=3)
        if self._chance(4):
            rows = [structs.replace(one, attempt=one.attempt + 1) for one in rows]
        notices = [self.make.notice(at=self.now, delivery=one.id) for one in rows]
        state, reason = self._one_of((("dead", None), ("cancelled", "request"), ("dropped", None)))
        return Call("end", (rows,), {"state": state, "reason": reason, "notices": notices, "now": self.now})

    def end_endpoint(self) -> Call:
        return Call("end_endpoint", (self._endpoint(),), {"reason": "deleted", "limit": 100, "now": self.now})

    def mark_overdue(self) -> Call:
        rows = self._rows(most=3)
        notices = [self.make.notice("delivery.overdue", at=self.now, delivery=one.id) for one in rows]
        return Call("mark_overdue", (rows, notices), {"now": self.now})

    # -- receipts ---------------------------------------------------------------------------------------

    def hear(self) -> Call:
        """Words about deliveries that there are, and now and then about what the endpoint never had."""
        book = self.model.book
        there = [*book.rows.values(), *book.stories.values()]
        endpoint = self._one_of(there).endpoint if there and not self._chance(10) else self._endpoint()
        theirs = [one for one in there if one.endpoint == endpoint or self._chance(20)]
        said = [
            Said(
                one.id,
                one.event,
                word(self._one_of(STAGES), self.now + self.pick(3), code=self._one_of("ab")),
            )
            for one in self._some(theirs, most=4)
        ]
        return Call("apply_receipts", (endpoint, said), {"tenant": TENANT, "now": self.now})

    def mark_unfinalized(self) -> Call:
        awaited = [
            PendingReceipt(
                *key, one.tenant, one.row.delivery, one.row.finalize_by - (1 if self._chance(10) else 0)
            )
            for key, one in sorted(self.model.book.receipts.items())
            if one.row.finalize_by is not None
        ]
        late = self._some(awaited, most=3)
        notices = [
            self.make.notice("delivery.unfinalized", at=self.now, delivery=one.delivery) for one in late
        ]
        return Call("mark_unfinalized", (late, notices), {"now": self.now})

    # -- management -------------------------------------------------------------------------------------

    def add_endpoint(self) -> Call:
        endpoint = self.make.endpoint(created_at=self.now, headers={"x": str(self.pick(9))})
        return Call("add_endpoint", (endpoint, self.make.secret(endpoint.id)))

    def change_endpoint(self) -> Call:
        changes = self._one_of(
            (
                {"status": "paused", "reason": "by hand"},
                {"status": "active", "reason": None, "failure_count": 0},
                {"policy": b'"signing"', "event_types": ("a", "b.*")},
            )
        )
        return Call("change_endpoint", (self._endpoint(), changes), {"now": self.now})

    def remove_endpoint(self) -> Call:
        return Call("remove_endpoint", (self._endpoint(),))

    def rotate_secret(self) -> Call:
        secret = self.make.secret(self._endpoint(), created_at=self.now)
        return Call("rotate_secret", (secret,), {"old_expires_at": self.now + HOUR_MS})

    def add_event_type(self) -> Call:
        name = f"type.{self.pick(3)}"
        schemas = self._one_of((None, b"{}", b'{"2":{}}'))
        return Call("add_event_type", (EventType(name, None, b"{}", "1", None, self.now, schemas),))

    def change_event_type(self) -> Call:
        return Call("change_event_type", (f"type.{self.pick(3)}", {"description": str(self.pick(9))}))

    def add_tenant(self) -> Call:
        return Call("add_tenant", (self.make.tenant(self._one_of((TENANT, "globex"))),))

    def remove_tenant(self) -> Call:
        return Call("remove_tenant", (self._one_of((TENANT, "globex")),))

    def add_key(self) -> Call:
        return Call("add_key", (ApiKey(self.make.id(), b"\x07" * 32, "ci", self.now),))

    # -- again ------------------------------------------------------------------------------------------

    def resend(self) -> Call:
        finished = [one for one in self._finished(most=3) if one.event in self.model.book.events]
        replacements = [
            self.make.delivery(
                self.model.book.events[one.event], one.endpoint, replay_of=one.id, due_at=self.now
            )
            for one in finished
        ]
        return Call(
            "resend", ([one.id for one in finished], replacements), {"now": self.now, "once": self._chance(2)}
        )

    def due_now(self) -> Call:
        rows = self._rows(most=1)
        return Call("due_now", (rows[0].id if rows else self.make.id(),), {"now": self.now})

    def dismiss(self) -> Call:
        finished = self._finished(most=1)
        return Call(
            "dismiss", (finished[0].id if finished else self.make.id(),), {"note": "known", "now": self.now}
        )

    def add_replay(self) -> Call:
        return Call(
            "add_replay", (ReplayJob(self.make.id(), b"{}", False, "running", 0, 0, self.now, None, None),)
        )

    def advance_replay(self) -> Call:
        jobs = [self.model.book.replays[one] for one in sorted(self.model.book.replays)]
        if not jobs:
            return self.add_replay()
        job = self._one_of(jobs)
        before = structs.replace(job, position=self.make.id()) if self._chance(3) else job
        state = self._one_of(("running", "done"))
        after = structs.replace(before, state=state, matched=job.matched + 1, position=self.make.id())
        originals, replacements = self.resend().args
        return Call("advance_replay", (before, after, originals, replacements), {"now": self.now})

    def prune_everything(self) -> Call:
        """What goes in one call depends on the book's steps, so it is asked for until nothing is left."""
        before = self.now - self._one_of((HOUR_MS, DAY_MS))
        return Call(
            PRUNE_ALL, (), {"events_before": before, "bodies_before": before + HOUR_MS, "now": self.now}
        )


PRUNE_ALL = "prune until nothing is left"

_SELDOM = [
    Play.enter, Play.evict, Play.free, Play.end, Play.end_endpoint, Play.add_endpoint, Play.change_endpoint,
    Play.remove_endpoint, Play.rotate_secret, Play.add_event_type, Play.change_event_type, Play.add_tenant,
    Play.remove_tenant, Play.add_key, Play.dismiss, Play.add_replay, Play.advance_replay,
]  # fmt: skip
_OFTEN = [
    Play.claim_ids, Play.release, Play.mark_overdue, Play.resend, Play.due_now, Play.beat, Play.park, Play.hear, Play.hear,
    Play.mark_unfinalized,
]  # fmt: skip
_MOST = [Play.accept, Play.accept, Play.claim, Play.unpark, Play.record, Play.record, Play.record]
CALLS: list[Callable[[Play], Call]] = [*_SELDOM, *_OFTEN * 2, *_MOST * 4]
