"""Delivering again: single deliveries, replay jobs, and dead letters that are dismissed.

All of this may run again after a commit whose answer was lost: it recognizes its own rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from surehook.core.model import Delivery
from surehook.ledgers.common.replays import columns
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query
from surehook.ports.reading import ReplayJob


async def dismiss(session: PostgresSession, delivery: bytes, *, note: str, now: int) -> bool:
    async with session.writing():
        was_there = await session.run(query("forget_dead_letters"), [delivery]) > 0
        if was_there:
            await session.run(query("dismiss"), delivery, note, now)
    return was_there


async def dismiss_again(session: PostgresSession, delivery: bytes, *, note: str, now: int) -> bool:
    """Dismiss a dead letter after a commit whose answer was lost."""
    if await session.value(query("dismissed"), delivery, note, now):
        return True
    return await dismiss(session, delivery, note=note, now=now)


async def resend(
    session: PostgresSession,
    originals: Sequence[bytes],
    replacements: Sequence[Delivery],
    *,
    now: int,
    once: bool,
) -> list[bytes]:
    async with session.writing():
        return await _resend(session, originals, replacements, now=now, once=once)


async def _resend(
    session: PostgresSession,
    originals: Sequence[bytes],
    replacements: Sequence[Delivery],
    *,
    now: int,
    once: bool,
) -> list[bytes]:
    pairs = list(zip(originals, replacements, strict=True))
    # Of two requests for the same original the second waits, and sees the rows of the first.
    await session.rows(query("resend_lock"), list(originals))
    look = await session.rows(query("resend_look"), list(originals), [d.id for d in replacements])
    found = {(row["original"], row["replacement"]): row for row in look}
    done_before = {row["original"] for row in look if row["was_replayed"]}
    made: list[bytes] = []
    fresh: list[tuple[bytes, Delivery]] = []
    for original, d in pairs:
        row = found.get((original, d.id))
        if row is None:
            continue
        # A delivery that exists was written by a commit whose answer was lost.
        if not row["is_born"]:
            if once and original in done_before:
                continue
            done_before.add(original)
            fresh.append((original, d))
        made.append(original)
    await _add(session, fresh, now)
    await session.run(query("forget_dead_letters"), made)
    return made


async def _add(session: PostgresSession, fresh: Sequence[tuple[bytes, Delivery]], now: int) -> None:
    if not fresh:
        return
    rows = [
        (
            d.id, d.event, d.endpoint, d.tenant, d.type, d.lane, d.attempt, d.due_at, d.born_at, d.overdue_at,
            d.parked, None if d.parked is None else now, d.replay_of,
        )
        for _, d in fresh
    ]  # fmt: skip
    await session.run(query("resend_deliveries"), *map(list, zip(*rows, strict=True)))
    # The last replacement is the one that is shown.
    links = {original: d.id for original, d in fresh}
    await session.run(query("replayed"), list(links), list(links.values()), now)


async def due_now(session: PostgresSession, delivery: bytes, *, now: int) -> bool:
    return bool(await session.change(query("due_now"), delivery, now))


async def add_replay(session: PostgresSession, job: ReplayJob) -> None:
    await session.change(query("replay_add"), *columns(job))


async def advance_replay(
    session: PostgresSession,
    before: ReplayJob,
    after: ReplayJob,
    originals: Sequence[bytes],
    replacements: Sequence[Delivery],
    *,
    now: int,
) -> ReplayJob | None:
    async with session.writing():
        step = (after.state, after.matched, before.created, after.finished_at, after.position)
        if not await session.run(query("replay_advance"), before.id, before.position, *step):
            return None
        made: list[bytes] = []
        if originals:
            made = await _resend(session, originals, replacements, now=now, once=True)
        if made:
            await session.run(query("replay_created"), before.id, len(made))
    return replace(after, created=before.created + len(made))
