"""The way in: one transaction, repeats told apart from conflicts, nothing half-written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from surehook.core.instants import DAY_MS
from surehook.core.model import Event, EventType
from surehook.ports.ledger import AcceptResult, Incoming
from surehook.ports.reading import EventFilter
from surehook.ports.registry import ApiKey

from .adapters import Adapter
from .desk import ALL, Desk, bare
from .making import NOW
from .test_changes import raise_without_note

OTHER = b"\x02" * 32  # the digest of other content


async def test_an_accepted_event_reads_back_as_it_was(desk: Desk) -> None:
    item = desk.make.incoming(
        desk.endpoint,
        event={
            "subject": "doc ü 1",
            "sequence": 2**63 - 1,
            "workflow_version": "7",
            "correlation_id": "c",
            "causation_id": "k",
            "source": "crm",
            "occurred_at": NOW - 5,
            "body": bytes(range(256)),
        },
    )
    (taken,) = await desk.accept(item)
    assert (taken.event, taken.fan_out, taken.fresh, taken.problem) == (item.event.id, 1, True, None)
    assert await desk.ledger.event(item.event.id) == item.event


async def test_a_delivery_is_handed_out_as_it_went_in(desk: Desk) -> None:
    born = await desk.publish_one(lane=1, due_at=NOW - 9, born_at=NOW - 10, overdue_at=NOW + 99)
    (claimed,) = await desk.claim(1)
    assert bare(claimed) == bare(born)


async def test_deliveries_for_many_endpoints_are_kept_each_as_it_was_born(desk: Desk) -> None:
    births: list[dict[str, Any]] = [
        {"held": True},
        {"parked": "share"},
        {"lane": 1, "due_at": NOW - 9, "born_at": NOW - 10},
        {"held": True, "overdue_at": NOW + 99},
        {"parked": "paused", "lane": 1},
    ]
    item = desk.make.incoming()
    for place in range(300):
        birth = births[place % len(births) if place < 200 else 0]
        item.deliveries.append(desk.make.delivery(item.event, desk.make.id(), **birth))
    born = {delivery.id: (bare(delivery), delivery.held) for delivery in item.deliveries}
    small = desk.make.incoming(desk.endpoint)
    await desk.accept(small, item)
    assert {
        delivery.id: (bare(kept), holder == desk.node)
        for delivery in item.deliveries
        for kept, holder in [await desk.row(delivery)]
    } == born
    assert {delivery.id for delivery in await desk.claim(1)} == {
        delivery.id for delivery in item.deliveries if delivery.lane == 1 and delivery.parked is None
    }


async def test_an_event_that_matches_no_endpoint_is_kept(desk: Desk) -> None:
    item = desk.make.incoming()
    (taken,) = await desk.accept(item)
    assert (taken.fresh, taken.fan_out) == (True, 0)
    assert await desk.ledger.event(item.event.id) == item.event


async def test_answers_come_in_the_order_of_the_batch(desk: Desk) -> None:
    items = [desk.make.incoming(desk.endpoint) for _ in range(5)]
    shuffled = [items[place] for place in (3, 0, 4, 2, 1)]
    assert [taken.event for taken in await desk.accept(*shuffled)] == [item.event.id for item in shuffled]


async def test_a_batch_of_a_thousand_is_one_call(desk: Desk) -> None:
    items = [desk.make.incoming(desk.endpoint) for _ in range(1_000)]
    assert all(taken.fresh for taken in await desk.accept(*items))
    assert len(await desk.claim(limit=2_000)) == 1_000


async def test_a_delivery_is_born_held_parked_or_ready(desk: Desk) -> None:
    held = await desk.publish_one(held=True)
    parked = await desk.publish_one(parked="share")
    ready = await desk.publish_one()
    assert [await desk.state(one) for one in (held, parked, ready)] == ["sending", "parked", "scheduled"]
    assert (await desk.row(held))[1] == desk.node
    assert [one.id for one in await desk.claim()] == [ready.id]


async def test_a_delivery_born_parked_is_held_by_nobody(desk: Desk) -> None:
    parked = await desk.publish_one(parked="paused", held=True)
    assert (await desk.state(parked), (await desk.row(parked))[1]) == ("parked", None)
    assert await desk.ledger.held_count(desk.node) == 0


async def test_a_stale_fan_out_writes_nothing(desk: Desk) -> None:
    version = await desk.ledger.version()
    await desk.new_endpoint()
    item = desk.make.incoming(desk.endpoint, key="k")
    result = await desk.ledger.accept([item], node=desk.node, version=version, now=NOW)
    assert (result.stale, result.taken) == (True, [])
    assert await desk.ledger.event(item.event.id) is None
    assert await desk.ledger.delivery(item.deliveries[0].id) is None
    assert (await desk.accept(item))[0].fresh


async def _accept_with(desk: Desk, since: int, **fields: Any) -> AcceptResult:
    item = desk.make.incoming(desk.endpoint, event={"type": "a.b"}, **fields)
    result: AcceptResult = await desk.ledger.accept([item], node=desk.node, version=since, now=NOW)
    assert not result.stale or await desk.ledger.event(item.event.id) is None
    return result


async def test_changes_of_others_hold_no_batch_up(desk: Desk) -> None:
    """Their tenant, their endpoints, a type that the batch has nothing of, a key: memory is behind, and the batch is taken."""
    await desk.ledger.add_tenant(desk.make.tenant("globex"))
    theirs = await desk.new_endpoint(tenant="globex")
    since = await desk.ledger.version()
    await desk.ledger.change_tenant("globex", {"strict": True})
    await desk.ledger.change_endpoint(theirs, {"status": "paused"}, now=NOW)
    await desk.ledger.add_event_type(EventType("a.c", None, None, "1", None, NOW))
    await desk.ledger.add_key(ApiKey(b"\xff" * 16, b"d" * 32, "k", NOW))
    tries: tuple[dict[str, Any], ...] = ({}, {"key": "k"}, {"key": "k"})  # the last one is a repeat
    for fields in tries:
        result = await _accept_with(desk, since, **fields)
        assert (result.stale, result.version) == (False, since + 4)


CONCERNING: dict[str, Callable[[Desk], Any]] = {
    "its tenant": lambda desk: desk.ledger.change_tenant("acme", {"strict": True}),
    "its type": lambda desk: desk.ledger.add_event_type(EventType("a.b", None, None, "1", None, NOW)),
    "an endpoint of its tenant": lambda desk: desk.ledger.change_endpoint(
        desk.endpoint, {"status": "paused"}, now=NOW
    ),
    "an endpoint that is gone": lambda desk: desk.ledger.remove_endpoint(desk.endpoint),
}


@pytest.mark.parametrize("concerned", CONCERNING)
@pytest.mark.parametrize("repeated", [False, True])
async def test_a_change_that_concerns_a_batch_is_met_among_those_of_others(
    desk: Desk, concerned: str, repeated: bool
) -> None:
    fields: dict[str, Any] = {"key": "k"} if repeated else {}
    if repeated:
        await _accept_with(desk, await desk.ledger.version(), **fields)
    since = await desk.ledger.version()
    await desk.ledger.add_tenant(desk.make.tenant("globex"))
    await CONCERNING[concerned](desk)
    await desk.ledger.add_tenant(desk.make.tenant("initech"))
    assert await _accept_with(desk, since, **fields) == AcceptResult(True, [], since + 3)


async def test_a_version_that_no_note_explains_concerns_every_batch(desk: Desk) -> None:
    await desk.ledger.add_tenant(desk.make.tenant("globex"))
    since = await desk.ledger.version()
    await raise_without_note(desk.ledger)
    await desk.ledger.change_tenant("globex", {"strict": True})
    assert (await _accept_with(desk, since)).stale


# -- repeats by key ---------------------------------------------------------------------------------------


async def test_a_repeat_by_key_is_answered_with_the_first_event(desk: Desk) -> None:
    first, repeat = desk.make.incoming(desk.endpoint, key="k"), desk.make.incoming(key="k")
    await desk.accept(first)
    (taken,) = await desk.accept(repeat)
    assert (taken.event, taken.fan_out, taken.fresh, taken.problem) == (first.event.id, 1, False, None)
    assert await desk.ledger.event(repeat.event.id) is None


async def test_a_key_with_other_content_is_a_conflict(desk: Desk) -> None:
    first = desk.make.incoming(key="k")
    other = desk.make.incoming(desk.endpoint, key="k", event={"digest": OTHER})
    await desk.accept(first)
    (taken,) = await desk.accept(other)
    assert (taken.fresh, taken.problem) == (False, "idempotency_conflict")
    assert await desk.ledger.event(other.event.id) is None
    assert await desk.ledger.delivery(other.deliveries[0].id) is None


async def test_a_key_belongs_to_its_tenant(desk: Desk) -> None:
    await desk.accept(desk.make.incoming(key="k"))
    (taken,) = await desk.accept(desk.make.incoming(key="k", event={"tenant": "globex", "digest": OTHER}))
    assert taken.fresh


@pytest.mark.parametrize(("age", "is_fresh"), [(DAY_MS - 1, False), (DAY_MS, True)])
async def test_a_key_is_known_for_a_day(desk: Desk, age: int, is_fresh: bool) -> None:
    await desk.accept(desk.make.incoming(key="k"), now=NOW)
    item = desk.make.incoming(key="k", at=NOW + age)
    (taken,) = await desk.accept(item, now=NOW + age)
    assert taken.fresh is is_fresh


async def test_an_expired_key_that_is_used_again_is_known_for_another_day(desk: Desk) -> None:
    await desk.accept(desk.make.incoming(key="k"), now=NOW)
    second = desk.make.incoming(key="k", at=NOW + DAY_MS, event={"digest": OTHER})
    await desk.accept(second, now=NOW + DAY_MS)
    third = desk.make.incoming(key="k", at=NOW + 2 * DAY_MS - 1, event={"digest": OTHER})
    (taken,) = await desk.accept(third, now=NOW + 2 * DAY_MS - 1)
    assert (taken.event, taken.fresh) == (second.event.id, False)


async def test_items_of_one_batch_may_carry_the_same_key(desk: Desk) -> None:
    first, repeat = desk.make.incoming(desk.endpoint, key="k"), desk.make.incoming(desk.endpoint, key="k")
    other = desk.make.incoming(desk.endpoint, key="k", event={"digest": OTHER})
    taken = await desk.accept(first, repeat, other)
    assert [(one.fresh, one.problem) for one in taken] == [
        (True, None),
        (False, None),
        (False, "idempotency_conflict"),
    ]
    assert taken[1].event == first.event.id
    assert [one.id for one in await desk.claim()] == [first.deliveries[0].id]


# -- repeats by id ----------------------------------------------------------------------------------------


def _again(desk: Desk, item: Incoming, *endpoints: bytes, **event: Any) -> Incoming:
    """The publisher sends the same id again: its own fan-out, with new delivery ids."""
    return desk.make.incoming(*endpoints, given=True, event={"id": item.event.id, **event})


async def test_a_repeat_by_id_is_answered_with_the_first_fan_out(desk: Desk) -> None:
    first = desk.make.incoming(desk.endpoint, given=True)
    repeat = _again(desk, first, desk.endpoint, await desk.new_endpoint())
    await desk.accept(first)
    (taken,) = await desk.accept(repeat)
    assert (taken.event, taken.fan_out, taken.fresh, taken.problem) == (first.event.id, 1, False, None)
    assert [one.id for one in await desk.claim()] == [first.deliveries[0].id]


@pytest.mark.parametrize("change", [{"digest": OTHER}, {"tenant": "globex"}], ids=["content", "tenant"])
async def test_an_id_with_other_content_or_tenant_is_a_conflict(desk: Desk, change: dict[str, Any]) -> None:
    first = desk.make.incoming(desk.endpoint, given=True)
    await desk.accept(first)
    (taken,) = await desk.accept(_again(desk, first, desk.endpoint, **change))
    assert (taken.fresh, taken.problem) == (False, "event_id_conflict")
    assert len(await desk.claim()) == 1
    assert await desk.ledger.event(first.event.id) == first.event


async def test_items_of_one_batch_may_carry_the_same_id(desk: Desk) -> None:
    first = desk.make.incoming(desk.endpoint, given=True)
    repeat, other = _again(desk, first, desk.endpoint), _again(desk, first, desk.endpoint, digest=OTHER)
    taken = await desk.accept(first, repeat, other)
    assert [(one.fresh, one.problem) for one in taken] == [
        (True, None),
        (False, None),
        (False, "event_id_conflict"),
    ]
    assert [one.id for one in await desk.claim()] == [first.deliveries[0].id]


async def test_a_repeat_by_id_is_one_after_its_deliveries_are_finished(desk: Desk) -> None:
    first = desk.make.incoming(desk.endpoint, given=True, held=True)
    await desk.accept(first)
    await desk.record(desk.make.delivered(first.deliveries[0]))
    (taken,) = await desk.accept(_again(desk, first, desk.endpoint))
    assert (taken.fan_out, taken.fresh, taken.problem) == (1, False, None)
    assert await desk.claim() == []


async def test_a_repeat_by_key_and_id_is_a_repeat(desk: Desk) -> None:
    first = desk.make.incoming(desk.endpoint, given=True, key="k")
    repeat = desk.make.incoming(desk.endpoint, given=True, key="k", event={"id": first.event.id})
    await desk.accept(first)
    (taken,) = await desk.accept(repeat)
    assert (taken.event, taken.fresh, taken.problem) == (first.event.id, False, None)
    assert [one.id for one in await desk.claim()] == [first.deliveries[0].id]


async def test_repeats_conflicts_and_fresh_ones_share_a_batch(desk: Desk) -> None:
    known, keyed = desk.make.incoming(given=True), desk.make.incoming(key="k")
    await desk.accept(known, keyed)
    batch = [
        desk.make.incoming(desk.endpoint),
        _again(desk, known),
        desk.make.incoming(key="k", event={"digest": OTHER}),
        desk.make.incoming(desk.endpoint, key="new"),
    ]
    assert [(one.fresh, one.problem) for one in await desk.accept(*batch)] == [
        (True, None),
        (False, None),
        (False, "idempotency_conflict"),
        (True, None),
    ]
    assert len(await desk.claim()) == 2


# -- the same batch again, after a commit whose answer was lost --------------------------------------------


@pytest.mark.parametrize("given", [False, True], ids=["our id", "the publisher's id"])
@pytest.mark.parametrize("key", [None, "k"], ids=["no key", "key"])
async def test_the_same_batch_again_counts_its_own_rows_as_fresh(
    desk: Desk, given: bool, key: str | None
) -> None:
    batch = [
        desk.make.incoming(desk.endpoint, given=given, key=key, held=True),
        desk.make.incoming(desk.endpoint),
    ]
    first = await desk.accept(*batch)
    again = await desk.accept(*batch)
    assert again == first
    assert [one.fresh for one in again] == [True, True]
    assert len(await desk.everything(desk.ledger.events, EventFilter())) == 2
    assert (await desk.row(batch[0].deliveries[0]))[1] == desk.node
    assert len(await desk.claim()) == 1


async def test_the_same_batch_again_is_fresh_when_another_node_was_faster(desk: Desk) -> None:
    """Its deliveries may be claimed and finished before the lost answer is asked for again."""
    item = desk.make.incoming(desk.endpoint, given=True)
    first = await desk.accept(item)
    (claimed,) = await desk.claim(node=await desk.new_node())
    other = (await desk.row(claimed))[1]
    await desk.record(desk.make.delivered(claimed), node=other)
    assert await desk.accept(item) == first
    assert await desk.state(claimed) == "delivered"
    assert await desk.claim() == []


async def test_the_same_batch_again_still_tells_its_own_repeats(desk: Desk) -> None:
    first = desk.make.incoming(desk.endpoint, key="k")
    named = desk.make.incoming(desk.endpoint, given=True)
    batch = [first, desk.make.incoming(desk.endpoint, key="k"), named, _again(desk, named, desk.endpoint)]
    before = await desk.accept(*batch)
    assert [one.fresh for one in before] == [True, False, True, False]
    assert await desk.accept(*batch) == before
    assert len(await desk.claim()) == 2


# -- rows that the database refuses -------------------------------------------------------------------------

UNSTORABLE = {
    "a lone surrogate": {"subject": "\ud800"},
    "a number over eight bytes": {"sequence": 2**63},
    "a number under eight bytes": {"sequence": -(2**63) - 1},
}


def _broken(desk: Desk, **event: Any) -> Incoming:
    return desk.make.incoming(desk.endpoint, event=event)


@pytest.mark.parametrize("event", UNSTORABLE.values(), ids=UNSTORABLE.keys())
async def test_a_row_that_cannot_be_stored_is_refused_alone(desk: Desk, event: dict[str, Any]) -> None:
    good, bad, fine = _broken(desk), _broken(desk, **event), _broken(desk)
    taken = await desk.accept(good, bad, fine)
    assert [(one.fresh, one.problem) for one in taken] == [(True, None), (False, "unstorable"), (True, None)]
    assert await desk.ledger.event(bad.event.id) is None
    assert await desk.ledger.delivery(bad.deliveries[0].id) is None
    assert {one.event for one in await desk.claim()} == {good.event.id, fine.event.id}


async def test_text_with_nul_is_stored_whole_or_refused_alone(desk: Desk, adapter: Adapter) -> None:
    good, odd = _broken(desk), _broken(desk, subject="a\0b")
    taken = await desk.accept(good, odd)
    assert taken[0].fresh
    assert taken[1].problem == (None if adapter.takes_nul else "unstorable")
    kept: Event | None = await desk.ledger.event(odd.event.id)
    assert (kept.subject if kept else None) == ("a\0b" if adapter.takes_nul else None)


async def test_the_key_of_a_refused_row_is_free(desk: Desk) -> None:
    await desk.accept(desk.make.incoming(key="k", event={"subject": "\ud800"}))
    (taken,) = await desk.accept(desk.make.incoming(key="k", event={"digest": OTHER}))
    assert taken.fresh


async def test_two_nodes_share_what_keys_are_known(desk: Desk) -> None:
    other = await desk.new_node()
    await desk.accept(desk.make.incoming(key="k"), node=other)
    (taken,) = await desk.accept(desk.make.incoming(key="k"))
    assert not taken.fresh
    assert len(await desk.claim(limit=ALL)) == 0
