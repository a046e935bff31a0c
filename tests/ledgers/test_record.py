"""What one window of results means for the book, in one transaction."""

from __future__ import annotations

import pytest
from msgspec import structs

from surehook.core.limits import CLOSINGS_KEPT_MS
from surehook.core.model import Attempt, BreakerRow, EndpointHealth, RecordedEndpoint, Settled
from surehook.ports.reading import NoticeFilter

from .adapters import Adapter
from .desk import Desk
from .making import NOW, TENANT

MINUTE = 60_000


async def test_a_delivered_one_leaves_the_hot_table_and_keeps_its_story(desk: Desk) -> None:
    held = await desk.hold_one()
    settled = desk.make.delivered(held)
    answer = await desk.record(settled, now=NOW + 40)
    assert (answer.lost, answer.changes) == ([], [])
    assert await desk.ledger.open_delivery(held.id) is None
    assert await desk.ledger.attempts(held.id) == [settled.entry]
    view = await desk.ledger.delivery(held.id)
    assert (view.state, view.outcome, view.attempts, view.due_at) == ("delivered", "delivered", 1, None)
    assert (view.event, view.endpoint, view.tenant, view.type) == (
        held.event,
        held.endpoint,
        held.tenant,
        held.type,
    )
    assert view.finished_at == NOW + 40


@pytest.mark.parametrize("end", ["delivered", "dead", "dropped", "cancelled"])
async def test_every_end_state_is_shown(desk: Desk, end: str) -> None:
    held = await desk.hold_one()
    settled = desk.make.ended(held, end, outcome="timed_out", unknown=True)
    await desk.record(structs.replace(settled, reason="request" if end == "cancelled" else None))
    view = await desk.ledger.delivery(held.id)
    assert (view.state, view.outcome, view.unknown) == (end, "timed_out", True)
    assert view.reason == ("request" if end == "cancelled" else None)


async def test_every_field_of_an_entry_reads_back(desk: Desk) -> None:
    held = await desk.hold_one()
    full = Attempt(
        delivery=held.id,
        number=1,
        kind="attempt",
        lane=1,
        started_at=NOW - 1,
        outcome="garbled",
        unknown=True,
        status=599,
        error="bad_headers",
        address="2001:db8::1",
        dns_us=0,
        connect_us=1,
        tls_us=2,
        first_byte_us=3,
        total_us=2**40,
        headers=b"a: \xff\r\n",
        body=bytes(range(256)) * 64,
        truncated=True,
        next_at=NOW + 5,
    )
    await desk.record(Settled(delivery=held, entry=full, lane=1, number=2, due_at=NOW + 5))
    assert await desk.ledger.attempts(held.id) == [full]


async def test_an_entry_with_nothing_measured_reads_back(desk: Desk) -> None:
    held = await desk.hold_one()
    plain = Attempt(delivery=held.id, number=1, kind="attempt", lane=0, started_at=NOW, outcome="blocked")
    await desk.record(Settled(delivery=held, entry=plain, end="dead"))
    assert await desk.ledger.attempts(held.id) == [plain]


async def test_a_failed_one_waits_in_its_next_place(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW + MINUTE, spared=1))
    row, holder = await desk.row(held)
    assert (row.lane, row.attempt, row.due_at, row.spared, holder) == (1, 2, NOW + MINUTE, 1, None)
    view = await desk.ledger.delivery(held.id)
    assert (view.state, view.outcome, view.attempts, view.lane) == ("retrying", "refused", 1, 1)
    assert (view.due_at, view.reason, view.finished_at) == (NOW + MINUTE, None, None)


async def test_an_unknown_outcome_stays_beside_the_state(desk: Desk) -> None:
    held = await desk.hold_one()
    entry = desk.make.attempt(held, outcome="timed_out", unknown=True, status=None)
    await desk.record(Settled(delivery=held, entry=entry, lane=1, number=2, due_at=NOW))
    view = await desk.ledger.delivery(held.id)
    assert (view.outcome, view.unknown) == ("timed_out", True)
    (again,) = await desk.claim(1)
    assert (again.outcome, again.unknown) == ("timed_out", True)


async def test_a_result_may_park(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW + 1, parked="key"))
    view = await desk.ledger.delivery(held.id)
    assert (view.state, view.reason, view.outcome) == ("parked", "key", "refused")
    assert await desk.claim(1, due_by=NOW + 1) == []


async def test_a_step_without_entry_leaves_no_trace(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW))
    await desk.ledger.free([(await desk.claim(1))[0].id], node=desk.node, now=NOW)
    (held,) = await desk.claim(1)
    before = await desk.ledger.attempts(held.id)
    await desk.record(Settled(delivery=held, entry=None, lane=0, number=2, due_at=NOW + 5, parked="breaker"))
    row, _ = await desk.row(held)
    assert (row.attempt, row.lane, row.due_at, row.outcome, row.freed) == (2, 0, NOW + 5, "refused", 1)
    assert await desk.ledger.attempts(held.id) == before
    assert await desk.state(held) == "parked"


async def test_many_results_share_one_window(desk: Desk) -> None:
    held = [await desk.hold_one() for _ in range(200)]
    settled = [
        desk.make.delivered(one) if place % 3 else desk.make.failed(one, due_at=NOW + place)
        for place, one in enumerate(held)
    ]
    await desk.record(*settled)
    states = [await desk.state(one) for one in held]
    assert states == ["delivered" if place % 3 else "retrying" for place in range(200)]
    assert await desk.ledger.held_count(desk.node) == 0


# -- the fence of a row -----------------------------------------------------------------------------------


async def test_results_for_rows_not_in_hand_are_lost_and_leave_nothing(desk: Desk) -> None:
    other = await desk.new_node()
    mine, theirs = await desk.hold_one(), await desk.publish_one(held=True, node=other)
    unheld, moved_on = await desk.publish_one(due_at=NOW + 9), await desk.hold_one()
    gone = desk.make.delivery(desk.make.event(), desk.endpoint)
    notice = desk.make.notice()
    batch = [
        desk.make.delivered(mine),
        structs.replace(desk.make.delivered(theirs), notices=(notice,)),
        desk.make.delivered(unheld),
        desk.make.failed(structs.replace(moved_on, attempt=2), due_at=NOW),
        desk.make.delivered(gone),
    ]
    answer = await desk.record(*batch)
    assert sorted(answer.lost) == sorted(one.id for one in (theirs, unheld, moved_on, gone))
    assert await desk.state(mine) == "delivered"
    assert [await desk.state(one) for one in (theirs, unheld, moved_on)] == [
        "sending",
        "scheduled",
        "sending",
    ]
    assert [await desk.kinds(one) for one in (theirs, unheld, moved_on, gone)] == [[]] * 4
    assert await desk.notice_kinds() == []


async def test_a_second_result_for_the_same_attempt_is_lost(desk: Desk) -> None:
    held = await desk.hold_one()
    await desk.record(desk.make.failed(held, due_at=NOW))
    await desk.claim(1)
    late = structs.replace(desk.make.delivered(held), entry=desk.make.attempt(held, total_us=1))
    assert (await desk.record(late)).lost == [held.id]
    assert await desk.kinds(held) == [("attempt", 1)]
    assert await desk.state(held) == "sending"


async def test_the_same_window_again_doubles_nothing(desk: Desk, adapter: Adapter) -> None:
    if not adapter.loses_answers:
        pytest.skip("a commit here is never in doubt, so no window is recorded twice")
    ended, waiting, theirs = await desk.hold_one(), await desk.hold_one(), await desk.hold_one()
    await desk.ledger.release([theirs], node=desk.node, now=NOW)
    settled = [
        structs.replace(desk.make.dead(ended), notices=(desk.make.notice(),)),
        desk.make.failed(waiting, due_at=NOW + 1),
        desk.make.delivered(theirs),
    ]
    window = {
        "health": [EndpointHealth(endpoint=desk.endpoint, succeeded=False, failures=2, limit=9)],
        "notices": [desk.make.notice("breaker.opened")],
    }
    first = await desk.record(*settled, **window)
    assert first.lost == [theirs.id]
    assert await desk.record(*settled, **window) == first
    assert [await desk.kinds(one) for one in (ended, waiting, theirs)] == [
        [("attempt", 1)],
        [("attempt", 1)],
        [],
    ]
    assert (await desk.ledger.endpoint(desk.endpoint)).failure_count == 2
    assert sorted(await desk.notice_kinds()) == ["breaker.opened", "delivery.dead"]


# -- health -----------------------------------------------------------------------------------------------


async def _fold(
    desk: Desk, *, succeeded: bool = False, failures: int = 0, limit: int | None = 20, **forced: str
) -> list[RecordedEndpoint]:
    health = EndpointHealth(desk.endpoint, succeeded=succeeded, failures=failures, limit=limit, **forced)  # type: ignore[arg-type]
    return (await desk.record(health=[health], now=NOW + MINUTE)).changes


FOLDS = [
    # windows as (succeeded, failures), and the count after them
    ([(False, 3)], 3),
    ([(False, 3), (False, 4)], 7),
    ([(False, 3), (True, 0)], 0),
    ([(False, 3), (True, 2)], 2),
    ([(True, 0)], 0),
    ([(False, 19)], 19),
]


@pytest.mark.parametrize(("windows", "count"), FOLDS)
async def test_failures_add_up_and_a_success_begins_anew(
    desk: Desk, windows: list[tuple[bool, int]], count: int
) -> None:
    version = await desk.ledger.version()
    for succeeded, failures in windows:
        await _fold(desk, succeeded=succeeded, failures=failures)
    endpoint = await desk.ledger.endpoint(desk.endpoint)
    assert (endpoint.failure_count, endpoint.status) == (count, "active")
    assert await desk.ledger.version() == version


async def test_changes_name_the_endpoints_whose_count_changed(desk: Desk) -> None:
    assert await _fold(desk, failures=2) == [RecordedEndpoint(desk.endpoint, 2, "active", None)]
    assert await _fold(desk, failures=0) == []
    assert await _fold(desk, succeeded=True) == [RecordedEndpoint(desk.endpoint, 0, "active", None)]
    assert await _fold(desk, succeeded=True) == []


async def test_an_endpoint_at_its_limit_turns_inactive_with_a_notice_and_a_new_version(desk: Desk) -> None:
    version = await desk.ledger.version()
    await _fold(desk, failures=19)
    (change,) = await _fold(desk, failures=1)
    assert change.disabled
    assert (change.endpoint, change.failure_count, change.status) == (desk.endpoint, 20, "inactive")
    endpoint = await desk.ledger.endpoint(desk.endpoint)
    assert (endpoint.status, endpoint.failure_count, endpoint.reason) == ("inactive", 20, change.reason)
    assert endpoint.reason is not None
    assert (endpoint.created_at, endpoint.updated_at) == (NOW, NOW + MINUTE)
    assert await desk.ledger.version() > version
    (notice,) = await desk.everything(desk.ledger.notices, NoticeFilter())
    assert (notice.kind, notice.tenant, notice.endpoint) == ("endpoint.disabled", TENANT, desk.endpoint)
    assert (notice.at, notice.detail) == (NOW + MINUTE, change.why_disabled)


async def test_an_inactive_endpoint_is_not_disabled_twice(desk: Desk) -> None:
    await _fold(desk, failures=20)
    version = await desk.ledger.version()
    (again,) = await _fold(desk, failures=5)
    assert (again.status, again.disabled) == ("inactive", False)
    assert await desk.notice_kinds() == ["endpoint.disabled"]
    assert await desk.ledger.version() == version


async def test_a_paused_endpoint_stays_paused_at_its_limit(desk: Desk) -> None:
    await desk.ledger.change_endpoint(desk.endpoint, {"status": "paused"}, now=NOW)
    await _fold(desk, failures=20)
    endpoint = await desk.ledger.endpoint(desk.endpoint)
    assert (endpoint.status, endpoint.failure_count) == ("paused", 20)
    assert await desk.notice_kinds() == []


async def test_without_a_limit_nothing_is_disabled(desk: Desk) -> None:
    await _fold(desk, failures=10_000, limit=None)
    assert (await desk.ledger.endpoint(desk.endpoint)).status == "active"


async def test_a_status_is_forced_with_its_reason(desk: Desk) -> None:
    version = await desk.ledger.version()
    (change,) = await _fold(desk, failures=1, status="failure", reason="exhausted")
    assert change == RecordedEndpoint(desk.endpoint, 1, "failure", "exhausted")
    endpoint = await desk.ledger.endpoint(desk.endpoint)
    assert (endpoint.status, endpoint.reason) == ("failure", "exhausted")
    assert await desk.ledger.version() > version
    assert await desk.notice_kinds() == []


async def test_the_health_of_a_removed_endpoint_is_nobodys(desk: Desk) -> None:
    await desk.ledger.remove_endpoint(desk.endpoint)
    assert await _fold(desk, failures=30) == []
    assert await desk.notice_kinds() == []


async def test_a_window_about_another_url_changes_nothing(desk: Desk) -> None:
    version = await desk.ledger.version()
    assert await _fold(desk, failures=30, url="https://elsewhere.example/") == []
    assert (
        await _fold(desk, failures=1, status="inactive", reason="gone", url="https://elsewhere.example/")
        == []
    )
    endpoint = await desk.ledger.endpoint(desk.endpoint)
    assert (endpoint.failure_count, endpoint.status) == (0, "active")
    assert await desk.ledger.version() == version
    assert await desk.notice_kinds() == []
    assert await _fold(desk, failures=1, url=endpoint.url) == [
        RecordedEndpoint(desk.endpoint, 1, "active", None)
    ]


async def test_each_endpoint_of_a_window_is_folded(desk: Desk) -> None:
    other = await desk.new_endpoint()
    health = [
        EndpointHealth(desk.endpoint, succeeded=False, failures=3, limit=3),
        EndpointHealth(other, succeeded=False, failures=2, limit=3),
    ]
    answer = await desk.record(health=health)
    assert {one.endpoint: one.status for one in answer.changes} == {
        desk.endpoint: "inactive",
        other: "active",
    }


# -- breakers and notices ---------------------------------------------------------------------------------


def _breaker(**fields: object) -> BreakerRow:
    row = BreakerRow(
        TENANT, "https://receiver.example:443/hook", "open", "failures", NOW, NOW + 300_000, 9, 20, NOW
    )
    return structs.replace(row, **fields)


async def test_breakers_are_kept_as_last_written(desk: Desk) -> None:
    other = _breaker(tenant="globex")
    await desk.record(breakers=[_breaker(), other])
    await desk.record(breakers=[_breaker(state="half_open", failures=10)])
    rows = await desk.ledger.breakers()
    assert sorted(rows, key=lambda row: row.tenant) == [_breaker(state="half_open", failures=10), other]


async def test_a_closed_breaker_is_forgotten(desk: Desk) -> None:
    await desk.record(breakers=[_breaker()])
    await desk.record(breakers=[_breaker(state="closed"), _breaker(key="never seen", state="closed")])
    assert await desk.ledger.breakers() == []


async def test_an_opening_that_is_written_late_undoes_no_closing(desk: Desk) -> None:
    await desk.record(breakers=[_breaker(state="closed", generation=NOW + 2)])
    await desk.record(breakers=[_breaker(generation=NOW + 1)])
    await desk.record(breakers=[_breaker(generation=NOW + 2)])
    assert await desk.ledger.breakers() == []
    again = _breaker(generation=NOW + 3)
    await desk.record(breakers=[again])
    assert await desk.ledger.breakers() == [again]


async def test_what_is_written_late_undoes_no_newer_opening(desk: Desk) -> None:
    newest = _breaker(opened_at=NOW + 9, generation=NOW + 9)
    await desk.record(breakers=[newest])
    await desk.record(breakers=[_breaker(generation=NOW + 5)])
    await desk.record(breakers=[_breaker(state="closed", generation=NOW + 8)])
    assert await desk.ledger.breakers() == [newest]


async def test_closings_are_told_to_those_who_ask_for_them(desk: Desk) -> None:
    other = _breaker(key="https://other.example:443/hook", generation=NOW + 1)
    await desk.record(breakers=[_breaker(state="closed", generation=NOW + 2), other])
    await desk.record(breakers=[_breaker(state="closed", generation=NOW + 1)])
    asked = [(TENANT, _breaker().key), (TENANT, other.key), (TENANT, "never seen")]
    first, closing = await desk.ledger.breakers(asked)
    assert (first, closing.state, closing.key, closing.generation) == (
        other,
        "closed",
        _breaker().key,
        NOW + 2,
    )


async def test_a_closing_is_forgotten_after_a_day(desk: Desk) -> None:
    await desk.record(breakers=[_breaker(state="closed")])
    place = (TENANT, _breaker().key)
    for now, kept in ((NOW + CLOSINGS_KEPT_MS, 1), (NOW + CLOSINGS_KEPT_MS + 1, 0)):
        for _ in range(20):  # rounds of all that retention looks at
            await desk.ledger.prune(events_before=0, bodies_before=0, limit=500, now=now)
        assert len(await desk.ledger.breakers([place])) == kept


async def test_notices_of_a_window_are_kept_with_it(desk: Desk) -> None:
    held = await desk.hold_one()
    dead = desk.make.notice(delivery=held.id, endpoint=desk.endpoint)
    opened = desk.make.notice("breaker.opened", endpoint=desk.endpoint)
    await desk.record(structs.replace(desk.make.dead(held), notices=(dead,)), notices=[opened])
    assert await desk.everything(desk.ledger.notices, NoticeFilter()) == [opened, dead]
