"""Days that go whole: what is needed stays and is found as before, and nobody waits for long."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import structs

from surehook.core.instants import DAY_MS, HOUR_MS, MINUTE_MS
from surehook.ledgers.postgres.days import LARGE_BYTES, days
from surehook.ledgers.postgres.indexing import index_one
from surehook.ledgers.postgres.partitions import day_of, first_id, name
from surehook.ledgers.postgres.retiring import MOVED_ROWS
from surehook.ports.reading import DeliveryFilter, EventFilter
from tests.ledgers.desk import ALL, Desk
from tests.ledgers.making import NOW

OLD = NOW - 40 * DAY_MS + 3 * HOUR_MS
MONTH_AGO = NOW - 30 * DAY_MS
DAY = day_of(OLD)
PADDING = 2_000  # bytes of a body, kept as they are, so that few rows make a large day


async def make_day(beside: Any, day: int = DAY, *, padding: int = 0, unfinished: int = 0) -> None:
    """The partitions of a day; `padding` events with a finished delivery each, and unfinished ones, made by the server."""
    low, high = first_id(day), first_id(day + 1)
    for table in ("event", "attempt"):
        await beside.execute(
            f"create table {name(table, day)} partition of {table} "
            f"for values from ('\\x{low.hex()}') to ('\\x{high.hex()}')"
        )
    await beside.execute(f"alter table {name('event', day)} alter column body set storage external")
    for count, is_finished in ((padding, True), (unfinished, False)):
        await beside.execute(
            """
            create temp table made on commit preserve rows as
            select n, decode(lpad(to_hex($1::bigint + n), 12, '0') || '7' || substr(md5($4 || n::text), 1, 19), 'hex') as id
            from generate_series(1, $2::int) n
            """.replace("$1", str(day * DAY_MS))
            .replace("$2", str(count))
            .replace("$4", f"'{is_finished}'")
        )
        await beside.execute(
            """
            insert into event (id, tenant, type, schema_version, accepted_at, digest, fan_out, body)
            select id, 'padding', 'padding', '1', $1, decode(md5(n::text), 'hex'), 1, decode(repeat('00', $2), 'hex')
            from made
            """,
            day * DAY_MS,
            PADDING,
        )
        line = (
            """
            insert into attempt (delivery, seq, lane, started_at, "end", finished_at, tenant, endpoint, type, event,
              headers, body)
            select id, 127, 0, $1, 'delivered', $1, 'padding', id, 'padding', id, '', '' from made
            """
            if is_finished
            else """
            insert into delivery (id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, parked, parked_at)
            select id, id, substr(id, 1, 4), 'padding', 'padding', 0, 1, $1, $1, 'paused', $1 from made
            """
        )
        await beside.execute(line, day * DAY_MS)
        await beside.execute("drop table made")


LOOKS = 10_000
LARGE = LARGE_BYTES // PADDING + 1_000


async def prune(desk: Desk, **fields: Any) -> int:
    wanted = {"events_before": MONTH_AGO, "bodies_before": MONTH_AGO, "limit": ALL, "now": NOW, **fields}
    return await desk.ledger.prune(**wanted)


async def index(desk: Desk) -> None:
    """Indexes come first, and would wait for somebody's transaction too, with more patience."""
    async with desk.ledger._pruning.lend() as session:
        while await index_one(session, now=NOW):
            """One more."""


async def begin_in_vain(desk: Desk, beside: Any, **fields: Any) -> None:
    """Everything is copied, and then a dump keeps the day from going."""
    await index(desk)
    async with beside.transaction():
        await beside.fetchval("select count(*) from event")
        assert await prune(desk, **fields) == 0


async def day_numbers(desk: Desk) -> list[int]:
    async with desk.ledger._pruning.lend() as session:
        return [day.number for day in await days(session)]


async def until_somebody_waits(beside: Any) -> None:
    """For a lock of this very connection."""
    blocked = "select exists (select 1 from pg_locks where pg_backend_pid() = any(pg_blocking_pids(pid)))"
    for _ in range(LOOKS):
        if await beside.fetchval(blocked):
            return
    raise AssertionError("nobody waits")


async def test_a_large_old_day_goes_whole(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    assert await prune(desk) == ALL
    assert DAY not in await day_numbers(desk)
    assert await desk.everything(desk.ledger.events, EventFilter()) == []
    assert await prune(desk) == 0


async def test_what_is_needed_outlives_its_day(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    dead = await desk.finish_one("dead", now=OLD)
    opened = await desk.hold_one(now=OLD)
    await desk.record(desk.make.failed(opened, due_at=OLD + 9), now=OLD)
    parked = await desk.publish_one(now=OLD, parked="paused")
    late = await desk.hold_one(now=OLD)
    await desk.record(desk.make.delivered(late), now=NOW)
    before = {
        one.id: (await desk.ledger.delivery(one.id), await desk.ledger.attempts(one.id))
        for one in (dead, opened, parked, late)
    }
    assert await prune(desk) == ALL
    assert DAY not in await day_numbers(desk)
    for one in (dead, opened, parked):
        assert (await desk.ledger.event(one.event)).body == one.body
    assert await desk.ledger.event(late.event) is None
    view, attempts = before[late.id]
    assert view is not None
    # What a delivery shows of its event goes with the event.
    before[late.id] = structs.replace(view, subject=None, correlation_id=None), attempts
    for id, told in before.items():
        assert (await desk.ledger.delivery(id), await desk.ledger.attempts(id)) == told
    listed = await desk.everything(desk.ledger.deliveries, DeliveryFilter())
    assert {one.id for one in listed} == set(before)
    claimed = await desk.claim(1, due_by=NOW)
    assert [one.id for one in claimed] == [opened.id]
    assert claimed[0].body == opened.body
    again = desk.make.delivery(await desk.ledger.event(dead.event), desk.endpoint, replay_of=dead.id)
    assert await desk.ledger.resend([dead.id], [again], now=NOW) == [dead.id]


async def test_many_needed_rows_are_a_day_again(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE, unfinished=MOVED_ROWS + 1)
    assert await prune(desk) == ALL
    assert DAY in await day_numbers(desk)
    left = await beside.fetchval(f"select count(*) from {name('event', DAY)}")
    assert left == MOVED_ROWS + 1
    assert await beside.fetchval("select count(*) from event_kept") == 0


async def test_what_is_left_of_a_day_is_not_retired_again_however_large_it_is(
    desk: Desk, beside: Any
) -> None:
    await make_day(beside, padding=100, unfinished=LARGE)
    assert await prune(desk) == ALL
    assert await prune(desk) == 0
    assert DAY in await day_numbers(desk)
    assert await beside.fetchval(f"select count(*) from {name('event', DAY)}") == LARGE


async def test_a_day_that_very_many_deliveries_need_is_retired_too(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    wanted = await desk.publish_one(now=OLD, parked="paused")
    await beside.execute(
        """
        insert into delivery (id, event, endpoint, tenant, type, lane, attempt, due_at, born_at, parked, parked_at)
        select substr(id, 1, 10) || decode(lpad(to_hex(n), 12, '0'), 'hex'), event, endpoint, tenant, type, lane,
          attempt, due_at, born_at, parked, parked_at
        from delivery, generate_series(1000, 51001) n where id = $1
        """,
        wanted.id,
    )
    assert await prune(desk) == ALL
    assert DAY not in await day_numbers(desk)
    assert [one.id for one in await desk.everything(desk.ledger.events, EventFilter())] == [wanted.event]


async def test_copies_that_are_made_stay_good_whatever_happens_until_the_day_goes(
    desk: Desk, beside: Any
) -> None:
    """A dump keeps the day from going; meanwhile retries are recorded, old ids come, and what was delivered is replayed."""
    await make_day(beside, padding=LARGE)
    # Each of an instant of its own: a note tells of all events whose ids begin as one does.
    opened, closed, done, dead = (
        await desk.hold_one(now=OLD),
        await desk.hold_one(now=OLD + 1),
        await desk.finish_one(now=OLD + 2),
        await desk.finish_one("dead", now=OLD + 3),
    )
    await index(desk)
    async with beside.transaction():
        await beside.fetchval("select count(*) from event")
        assert await prune(desk) == 0
        await desk.record(desk.make.failed(opened, due_at=NOW), now=OLD)
        late = await desk.publish_one(at=OLD + 4, now=NOW, parked="paused")
        again = desk.make.delivery(await desk.ledger.event(done.event), desk.endpoint, replay_of=done.id)
        assert await desk.ledger.resend([done.id], [again], now=NOW) == [done.id]
        await desk.record(desk.make.delivered(closed), now=NOW)
    copied = await beside.fetchval(f"select array_agg(ctid::text order by id) from event_stays_{DAY}")
    assert await prune(desk) == ALL
    assert DAY not in await day_numbers(desk)
    assert len(copied) == 3  # of the two open ones and of the dead letter: they were not copied anew
    for one in (opened, late, again, dead):
        assert (await desk.ledger.event(one.event)).body == one.body
    assert await desk.kinds(opened) == [("attempt", 1)]
    assert await desk.kinds(dead) == [("attempt", 1)]
    assert await desk.kinds(closed) == [("attempt", 1)]
    assert await beside.fetchval("select count(*) from pg_trigger where tgname = 'retiring'") == 0
    assert await beside.fetchval("select count(*) from retiring_note") == 0


async def test_a_restart_goes_on_where_copying_ended(desk: Desk, beside: Any, place: str) -> None:
    await make_day(beside, padding=LARGE)
    needed = await desk.publish_one(now=OLD, parked="paused")
    await begin_in_vain(desk, beside)
    before = await beside.fetchval(f"select xmin::text from event_stays_{DAY}")
    other = type(desk.ledger)(place)
    await other.open(now=NOW)
    async with beside.transaction():
        await beside.fetchval("select count(*) from event")
        wanted = {"events_before": MONTH_AGO, "bodies_before": MONTH_AGO, "limit": ALL, "now": NOW}
        assert await other.prune(**wanted) == 0
    assert await beside.fetchval(f"select xmin::text from event_stays_{DAY}") == before
    assert await other.prune(**wanted) == ALL
    assert (await other.event(needed.event)).body == needed.body
    await other.close()


async def test_a_day_whose_retirement_came_to_no_end_makes_room_for_another(desk: Desk, beside: Any) -> None:
    """Its bodies were to go; by now the day itself is past its life."""
    await make_day(beside, padding=LARGE)
    needed = await desk.publish_one(now=OLD, parked="paused")
    await begin_in_vain(desk, beside, events_before=0)
    assert await prune(desk) == ALL
    assert DAY not in await day_numbers(desk)
    assert (await desk.ledger.event(needed.event)).body == needed.body


async def test_bodies_that_come_to_be_needed_after_the_copying_stay(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    done, other = await desk.finish_one(now=OLD), await desk.finish_one(now=OLD + 1)
    await index(desk)
    async with beside.transaction():
        await beside.fetchval("select count(*) from event")
        assert await prune(desk, events_before=0) == 0
        late = await desk.publish_one(at=OLD + 2, now=NOW, parked="paused")
        again = desk.make.delivery(await desk.ledger.event(done.event), desk.endpoint, replay_of=done.id)
        assert await desk.ledger.resend([done.id], [again], now=NOW) == [done.id]
    assert await prune(desk, events_before=0) == ALL
    assert (await desk.ledger.event(other.event)).body == b""
    for one in (late, again):
        assert (await desk.ledger.event(one.event)).body == one.body


async def test_copies_that_were_made_for_a_shorter_life_are_made_anew(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    lately = await desk.finish_one(at=OLD, now=MONTH_AGO - HOUR_MS)
    await begin_in_vain(desk, beside, events_before=NOW)
    assert await prune(desk, events_before=MONTH_AGO - 2 * HOUR_MS) == ALL
    assert await desk.kinds(lately) == [("attempt", 1)]


async def test_copies_are_made_anew_for_tables_that_have_changed_since(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    needed = await desk.publish_one(now=OLD, parked="paused")
    await begin_in_vain(desk, beside)
    await beside.execute("alter table event add column more text")
    assert await prune(desk) == ALL
    assert DAY not in await day_numbers(desk)
    assert (await desk.ledger.event(needed.event)).body == needed.body


async def test_notes_of_another_schema_are_not_taken_for_ours(desk: Desk, beside: Any) -> None:
    """A program of the version before has put another table into the day's place; a ledger beside it retires too."""
    await make_day(beside, padding=LARGE)
    await begin_in_vain(desk, beside)
    await beside.execute(f"drop trigger retiring on {name('event', DAY)}")
    late = await desk.publish_one(at=OLD, now=NOW, parked="paused")
    await beside.execute("create temp table another (id bytea)")
    await beside.execute(
        "create trigger retiring after insert on another for each row execute function note_retiring('event')"
    )
    assert await prune(desk) == ALL
    assert (await desk.ledger.event(late.event)).body == late.body


async def test_what_the_version_before_has_copied_goes(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    await beside.execute(f"create table event_left_{DAY} (like event)")
    assert await prune(desk) == ALL
    assert await beside.fetchval(f"select to_regclass('event_left_{DAY}')") is None


async def test_a_day_that_is_old_in_part_only_stays(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    assert await prune(desk, events_before=(DAY + 1) * DAY_MS - 1, bodies_before=0) == 0
    assert DAY in await day_numbers(desk)


async def test_bodies_of_a_large_day_go_before_it(desk: Desk, beside: Any) -> None:
    await make_day(beside, padding=LARGE)
    done, needed = await desk.finish_one(now=OLD), await desk.publish_one(now=OLD)
    size = await beside.fetchval(f"select pg_total_relation_size('{name('event', DAY)}')")
    assert await prune(desk, events_before=0) == ALL
    assert (await desk.ledger.event(done.event)).body == b""
    assert (await desk.ledger.event(needed.event)).body == needed.body
    assert await beside.fetchval(f"select pg_total_relation_size('{name('event', DAY)}')") < size / 5
    assert await prune(desk, events_before=0) == 0
    while await prune(desk):  # small by now: row by row
        pass
    assert [one.id for one in await desk.everything(desk.ledger.events, EventFilter())] == [needed.event]


async def test_a_day_waits_while_somebody_holds_its_table(desk: Desk, beside: Any) -> None:
    """And nobody else waits behind it for longer than the lock's own patience."""
    await make_day(beside, padding=LARGE)
    await index(desk)
    async with beside.transaction():
        await beside.fetchval("select count(*) from event")
        pruning = asyncio.create_task(prune(desk))
        for _ in range(5):
            await desk.publish_one()
        assert await pruning == 0
    assert await prune(desk) == ALL


async def test_only_one_node_prunes_at_a_time(desk: Desk, beside: Any) -> None:
    from surehook.ledgers.postgres.prune import PRUNE_LOCK

    await make_day(beside, padding=LARGE)
    await beside.fetchval("select pg_advisory_lock($1)", PRUNE_LOCK)
    assert await prune(desk) == 0
    await beside.fetchval("select pg_advisory_unlock($1)", PRUNE_LOCK)
    assert await prune(desk) == ALL


async def test_a_day_that_became_empty_goes(desk: Desk, beside: Any) -> None:
    await make_day(beside)
    done = await desk.finish_one(now=OLD)
    assert await prune(desk) > 0
    await prune(desk)
    assert await desk.ledger.delivery(done.id) is None
    assert DAY not in await day_numbers(desk)


async def test_an_event_that_is_wanted_again_is_not_pruned(desk: Desk, beside: Any) -> None:
    """A new delivery of an old event that is being made holds the event's row, and pruning looks again."""
    done = await desk.finish_one(now=OLD)
    again = desk.make.delivery(await desk.ledger.event(done.event), desk.endpoint, replay_of=done.id)
    async with beside.transaction():
        await beside.execute("select 1 from event where id = $1 for share", done.event)
        pruning = asyncio.create_task(prune(desk))
        await until_somebody_waits(beside)
        await beside.execute(
            "insert into delivery (id, event, endpoint, tenant, type, lane, attempt, due_at, born_at) "
            "values ($1, $2, $3, 'acme', 't', 0, 1, 0, 0)",
            again.id, again.event, again.endpoint,
        )  # fmt: skip
    await pruning
    assert (await desk.ledger.event(done.event)).body == done.body


async def test_a_calm_minute_asks_little(desk: Desk) -> None:
    """Dead letters lie for years: what each minute asks is asked half a million times a year."""
    asked: list[str] = []

    async def minute(place: int) -> int:
        asked.clear()
        await prune(desk, now=NOW + place * MINUTE_MS)
        return len(asked)

    await index(desk)
    await desk.finish("dead", count=3)
    for place in range(3):
        await minute(place)
    async with desk.ledger._pruning.lend() as session:
        connection = await session.connected()
        connection.add_query_logger(lambda record: asked.append(record.query))
    assert await minute(3) <= 14
    assert not any("pg_get_expr" in one or "pg_table_size" in one for one in asked)
    await minute(20)
    assert any("pg_get_expr" in one for one in asked) and any("pg_table_size" in one for one in asked)
