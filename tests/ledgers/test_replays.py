"""Deliver again: single deliveries, dead letters, and the jobs that walk over many."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import structs

from surehook.core.model import Delivery
from surehook.ports.reading import Dismissal, ReplayJob

from .desk import Desk, bare
from .making import NOW


async def _again(desk: Desk, original: Delivery) -> Delivery:
    event = await desk.ledger.event(original.event)
    return desk.make.delivery(
        event, original.endpoint, replay_of=original.id, born_at=NOW + 5, due_at=NOW + 5
    )


async def test_a_resent_delivery_is_a_new_one_that_names_the_old(desk: Desk) -> None:
    done = await desk.finish_one()
    again = await _again(desk, done)
    assert await desk.ledger.resend([done.id], [again], now=NOW + 5) == [done.id]
    old, new = await desk.ledger.delivery(done.id), await desk.ledger.delivery(again.id)
    assert (old.state, old.replayed_by, old.replay_of) == ("delivered", again.id, None)
    assert (new.state, new.replay_of, new.replayed_by, new.attempts) == ("scheduled", done.id, None, 0)
    (claimed,) = await desk.claim(due_by=NOW + 5)
    assert bare(claimed) == bare(again)
    await desk.record(desk.make.delivered(claimed))
    assert (await desk.ledger.delivery(again.id)).replay_of == done.id
    assert await desk.kinds(done) == await desk.kinds(again) == [("attempt", 1)]


async def test_a_delivery_is_resent_as_often_as_asked(desk: Desk) -> None:
    done = await desk.finish_one()
    first, second = await _again(desk, done), await _again(desk, done)
    await desk.ledger.resend([done.id], [first], now=NOW)
    assert await desk.ledger.resend([done.id], [second], now=NOW) == [done.id]
    assert (await desk.ledger.delivery(done.id)).replayed_by == second.id
    assert len(await desk.claim(due_by=NOW + 5)) == 2


async def test_with_once_what_was_replayed_before_is_skipped(desk: Desk) -> None:
    done, fresh = await desk.finish_one(), await desk.finish_one("dead")
    await desk.ledger.resend([done.id], [await _again(desk, done)], now=NOW)
    originals = [done.id, fresh.id, fresh.id]
    replacements = [await _again(desk, one) for one in (done, fresh, fresh)]
    assert await desk.ledger.resend(originals, replacements, now=NOW, once=True) == [fresh.id]
    assert len(await desk.claim(due_by=NOW + 5)) == 2
    assert (await desk.ledger.delivery(fresh.id)).replayed_by == replacements[1].id


async def test_open_and_unknown_originals_are_skipped(desk: Desk) -> None:
    opened, held = await desk.publish_one(), await desk.hold_one()
    never = desk.make.delivery(desk.make.event(), desk.endpoint)
    replacements = [
        desk.make.delivery(desk.make.event(id=one.event), one.endpoint) for one in (opened, held, never)
    ]
    assert await desk.ledger.resend([opened.id, held.id, never.id], replacements, now=NOW) == []
    assert [one.id for one in await desk.claim(due_by=NOW + 5)] == [opened.id]


async def test_originals_without_endpoint_or_event_are_skipped(desk: Desk) -> None:
    other = await desk.new_endpoint()
    homeless, bodiless = await desk.publish(other, desk.endpoint, held=True)
    await desk.record(desk.make.dead(homeless), desk.make.delivered(bodiless))
    old = await desk.finish_one(now=NOW - 9)
    replacements = [await _again(desk, homeless), await _again(desk, old)]
    await desk.ledger.remove_endpoint(other)
    await desk.ledger.prune(events_before=0, bodies_before=NOW - 1, limit=100, now=NOW)
    assert await desk.ledger.resend([homeless.id, old.id], replacements, now=NOW) == []
    assert (await desk.ledger.delivery(homeless.id)).replayed_by is None
    assert await desk.claim(due_by=NOW + 5) == []


async def test_a_replacement_may_be_born_parked(desk: Desk) -> None:
    done = await desk.finish_one()
    again = structs.replace(await _again(desk, done), parked="paused")
    await desk.ledger.resend([done.id], [again], now=NOW)
    assert (await desk.ledger.delivery(again.id)).reason == "paused"


async def test_only_a_dead_letter_is_dismissed_and_once(desk: Desk) -> None:
    dead, done, opened = await desk.finish_one("dead"), await desk.finish_one(), await desk.publish_one()
    answers = [
        await desk.ledger.dismiss(one, note="n", now=NOW)
        for one in (dead.id, dead.id, done.id, opened.id, desk.make.id())
    ]
    assert answers == [True, False, False, False, False]
    assert await desk.state(dead) == "dead"
    assert (await desk.ledger.delivery(dead.id)).dismissal == Dismissal("n", NOW)
    assert (await desk.ledger.delivery(done.id)).dismissal is None


async def test_a_replayed_dead_letter_is_none_any_more(desk: Desk) -> None:
    dead = await desk.finish_one("dead")
    await desk.ledger.resend([dead.id], [await _again(desk, dead)], now=NOW)
    assert await desk.ledger.dismiss(dead.id, note="n", now=NOW) is False


async def test_dead_letters_are_counted_until_they_are_replayed_or_dismissed(desk: Desk) -> None:
    first, second = await desk.finish_one("dead"), await desk.finish_one("dead")
    await desk.finish_one()
    counts = [await desk.ledger.dead_letter_count()]
    await desk.ledger.dismiss(first.id, note="n", now=NOW)
    counts.append(await desk.ledger.dead_letter_count())
    await desk.ledger.resend([second.id], [await _again(desk, second)], now=NOW)
    counts.append(await desk.ledger.dead_letter_count())
    assert counts == [2, 1, 0]


async def test_a_dismissed_dead_letter_can_be_replayed(desk: Desk) -> None:
    dead = await desk.finish_one("dead")
    await desk.ledger.dismiss(dead.id, note="n", now=NOW)
    assert await desk.ledger.resend([dead.id], [await _again(desk, dead)], now=NOW) == [dead.id]


async def test_a_waiting_delivery_is_made_due_now(desk: Desk) -> None:
    ahead, past = await desk.publish_one(due_at=NOW + 99), await desk.publish_one(due_at=NOW - 99)
    assert await desk.ledger.due_now(ahead.id, now=NOW) is True
    assert await desk.ledger.due_now(past.id, now=NOW) is True
    assert [one.id for one in await desk.claim(due_by=NOW)] == [past.id, ahead.id]
    assert (await desk.row(ahead))[0].due_at == NOW


async def test_a_held_or_finished_delivery_cannot_be_made_due(desk: Desk) -> None:
    held, done = await desk.hold_one(due_at=NOW + 99), await desk.finish_one()
    for one in (held.id, done.id, desk.make.id()):
        assert await desk.ledger.due_now(one, now=NOW) is False
    assert (await desk.row(held))[0].due_at == NOW + 99


async def test_a_parked_delivery_stays_parked_and_is_due(desk: Desk) -> None:
    """Its reason still holds; once that passes, nothing else keeps it waiting."""
    parked = await desk.publish_one(parked="breaker", due_at=NOW + 99)
    assert await desk.ledger.due_now(parked.id, now=NOW) is True
    assert (await desk.state(parked), (await desk.row(parked))[0].due_at) == ("parked", NOW)


def _job(desk: Desk, **fields: Any) -> ReplayJob:
    job = ReplayJob(desk.make.id(), b'{"tenant":"acme"}', False, "running", 0, 0, NOW, None, None)
    return structs.replace(job, **fields)


async def test_replay_jobs_are_kept_with_their_place(desk: Desk) -> None:
    job, dry = _job(desk), _job(desk, dry_run=True, position=b"\x01" * 16)
    await desk.ledger.add_replay(job)
    await desk.ledger.add_replay(dry)
    assert await desk.ledger.replay(job.id) == job
    assert sorted(one.id for one in await desk.ledger.unfinished_replays()) == [job.id, dry.id]
    further = structs.replace(job, matched=7, position=b"\x02" * 16)
    assert await desk.ledger.advance_replay(job, further, [], [], now=NOW) == further
    assert await desk.ledger.replay(job.id) == further
    done = structs.replace(dry, state="done", finished_at=NOW + 1, position=None)
    assert await desk.ledger.advance_replay(dry, done, [], [], now=NOW) == done
    assert await desk.ledger.unfinished_replays() == [further]
    assert await desk.ledger.replay(desk.make.id()) is None


async def test_a_page_of_a_job_makes_its_deliveries_and_counts_them(desk: Desk) -> None:
    done, other, replayed = await desk.finish_one(), await desk.finish_one("dead"), await desk.finish_one()
    await desk.ledger.resend([replayed.id], [await _again(desk, replayed)], now=NOW)
    job = _job(desk, created=5, position=b"\x02" * 16)
    await desk.ledger.add_replay(job)
    after = structs.replace(job, matched=3, position=b"\x01" * 16)
    rows = (done, other, replayed)
    replacements = [await _again(desk, one) for one in rows]
    moved = await desk.ledger.advance_replay(job, after, [one.id for one in rows], replacements, now=NOW)
    assert moved == structs.replace(after, created=7) == await desk.ledger.replay(job.id)
    assert (await desk.ledger.delivery(done.id)).replayed_by == replacements[0].id
    assert len(await desk.claim(due_by=NOW + 5)) == 3


async def test_a_walker_that_is_behind_moves_no_job_and_makes_nothing(desk: Desk) -> None:
    done = await desk.finish_one()
    job = _job(desk)
    await desk.ledger.add_replay(job)
    ahead = structs.replace(job, position=b"\x05" * 16)
    await desk.ledger.advance_replay(job, ahead, [], [], now=NOW)
    again, later = [await _again(desk, done)], structs.replace(job, matched=1, position=b"\x05" * 16)
    assert await desk.ledger.advance_replay(job, later, [done.id], again, now=NOW) is None
    ended = structs.replace(ahead, state="done", finished_at=NOW)
    assert await desk.ledger.advance_replay(ahead, ended, [], [], now=NOW) == ended
    assert await desk.ledger.advance_replay(ahead, ended, [done.id], again, now=NOW) is None
    assert await desk.ledger.advance_replay(_job(desk), later, [done.id], again, now=NOW) is None
    assert await desk.ledger.replay(job.id) == ended
    assert await desk.claim(due_by=NOW + 5) == []


async def test_of_two_walkers_at_once_one_moves_the_job(desk: Desk) -> None:
    done = await desk.finish_one()
    job = _job(desk)
    await desk.ledger.add_replay(job)
    after = structs.replace(job, matched=1, position=b"\x05" * 16)
    pages = [[await _again(desk, done)] for _ in range(4)]
    moves = (desk.ledger.advance_replay(job, after, [done.id], page, now=NOW) for page in pages)
    moved = [one for one in await asyncio.gather(*moves) if one is not None]
    assert moved == [structs.replace(after, created=1)]
    assert len(await desk.claim(due_by=NOW + 5)) == 1
