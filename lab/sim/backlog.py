"""A backlog that is about to be past its age: many deliveries parked behind a breaker that stands open for hours.

They are in the ledger before anybody starts, and reach their `max_age` together, at the end of the storm. What age
ends must then be ended within `ENDED_S`, however many they are. Nobody listens at their endpoint, and no order of the
world concerns it.
"""

from __future__ import annotations

import hashlib
import json
import random
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from lab.sim.clock import EPOCH_MS
from lab.sim.entropy import Seed
from surehook.core import ids
from surehook.core.model import RETRY, BreakerRow, Delivery, Endpoint, Event, NodeRow, Secret, Tenant
from surehook.ports.ledger import Incoming, Recorded

if TYPE_CHECKING:
    from lab.sim.world import World

TENANT, URL = "aged", "http://aged.example/hook"
MAX_AGE_S, PROBE_S = 3_600, 86_400
POLICY = {
    "profile": "standard", "max_age": MAX_AGE_S, "schedule": {"fixed": [PROBE_S]},
    "breaker": {"calls": 5, "probe_after": PROBE_S},
}  # fmt: skip
ENDED_S = 40.0  # after all is mended: a start, a look, and the steps; at 200 rows a look some 800 would be


class Backlog(Struct, frozen=True):
    """Count the deliveries that wait."""

    rows: int


def draw_backlog(seed: int | str, *, several: bool) -> Backlog | None:
    """One world of eight has one, of a stream of its own. Not where nodes share what they know of endpoints: they
    would close the breaker."""
    chance = Seed(seed).stream("backlog")
    if several or chance.random() >= 0.125:
        return None
    return Backlog(chance.randint(1_200, 2_000))


async def pile_up(world: World, ledger: Any) -> None:
    """Write the backlog of the world, if it has one, as a node that died long ago would have left it."""
    backlog = world.options.backlog
    if backlog is None:
        return
    chance, book = world.seed.stream("backlog rows"), world.book
    await ledger.add_tenant(Tenant(id=TENANT, name=TENANT, strict=False, created_at=EPOCH_MS))
    endpoint = await _endpoint(world, ledger, chance)
    node = ids.uuid7(EPOCH_MS - 1, chance.randbytes(10))
    await ledger.enter(
        NodeRow(id=node, host="gone", boot_id="gone", pid=1, started_at=EPOCH_MS), now=EPOCH_MS
    )
    book.entered(node)
    # Past their age at the end of the storm.
    born_at = EPOCH_MS + int(world.options.storm_s * 1000) - MAX_AGE_S * 1000
    batch = [_incoming(chance, endpoint, born_at + number) for number in range(backlog.rows)]
    result = await ledger.accept(batch, node=node, version=await ledger.version(), now=EPOCH_MS)
    book.accepted(batch, node, result)
    breaker = BreakerRow(
        tenant=TENANT, key=URL, state="open", reason="failures", opened_at=EPOCH_MS,
        probe_at=EPOCH_MS + PROBE_S * 1000, failures=5, calls=5,
        generation=EPOCH_MS,
    )  # fmt: skip
    await ledger.record([], node=node, health=[], breakers=[breaker], notices=[], now=EPOCH_MS)
    book.recorded([], node, Recorded([], []), [breaker])
    world.verdicts.stands_open((TENANT, URL))
    eviction = await ledger.evict([node], now=EPOCH_MS)
    book.did_evict(eviction.nodes, eviction.freed, EPOCH_MS)
    for item in batch:
        for delivery in item.deliveries:
            world.checkers.ages_at[delivery.id] = delivery.born_at + MAX_AGE_S * 1000


async def _endpoint(world: World, ledger: Any, chance: random.Random) -> bytes:
    made = Endpoint(
        id=ids.uuid7(EPOCH_MS, chance.randbytes(10)), tenant=TENANT, url=URL, event_types=("aged",),
        policy=json.dumps(POLICY).encode(), status="active", reason=None, failure_count=0, order="none", headers={},
        description=None, created_at=EPOCH_MS, updated_at=EPOCH_MS,
    )  # fmt: skip
    secret = Secret(
        id=ids.uuid7(EPOCH_MS, chance.randbytes(10)), endpoint=made.id, kind="v1", material=chance.randbytes(32),
        created_at=EPOCH_MS, expires_at=None,
    )  # fmt: skip
    await ledger.add_endpoint(made, secret)
    world.checkers.know(made.id, TENANT, URL, POLICY)
    return made.id


def _incoming(chance: random.Random, endpoint: bytes, born_at: int) -> Incoming:
    body = b'{"n":%d}' % born_at
    event = Event(
        id=ids.uuid7(born_at, chance.randbytes(10)), tenant=TENANT, type="aged", schema_version="1", subject=None,
        sequence=None, workflow_version=None, correlation_id=None, causation_id=None, source=None, occurred_at=None,
        accepted_at=born_at, body=body, digest=hashlib.sha256(body).digest(), fan_out=1,
    )  # fmt: skip
    delivery = Delivery(
        id=ids.delivery_id(event.id, chance.randbytes(6)), event=event.id, endpoint=endpoint, tenant=TENANT,
        type="aged", lane=RETRY, attempt=1, due_at=born_at, born_at=born_at, body=body, parked="breaker",
    )  # fmt: skip
    return Incoming(event=event, deliveries=[delivery])
