"""Delivering again: single deliveries, replay jobs, and dead letters that are dismissed."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import json
from msgspec.structs import replace

from surehook.core.model import Delivery
from surehook.ledgers.common.replays import columns
from surehook.ledgers.sqlite.rows import run_batch
from surehook.ledgers.sqlite.session import SqliteSession
from surehook.ledgers.sqlite.statements import Values, batch, query
from surehook.ports.reading import ReplayJob


def dismiss(session: SqliteSession, delivery: bytes, *, note: str, now: int) -> bool:
    with session.writing():
        is_there = run_batch(session, "forget_dead_letters", [delivery]) > 0
        if is_there:
            session.run(query("dismiss"), (delivery, note, now))
    return is_there


def resend(
    session: SqliteSession,
    originals: Sequence[bytes],
    replacements: Sequence[Delivery],
    *,
    now: int,
    once: bool,
) -> list[bytes]:
    with session.writing():
        return _resend(session, originals, replacements, now=now, once=once)


def _resend(
    session: SqliteSession,
    originals: Sequence[bytes],
    replacements: Sequence[Delivery],
    *,
    now: int,
    once: bool,
) -> list[bytes]:
    can, done_before, born = _look(session, originals, replacements)
    made: Values = []
    deliveries: Values = []
    links: Values = []
    for original, d in zip(originals, replacements, strict=True):
        if original not in can:
            continue
        # A delivery that exists was written by a commit whose answer was lost.
        if d.id not in born:
            if once and original in done_before:
                continue
            done_before.add(original)
            deliveries += (
                d.id, d.event, d.endpoint, d.tenant, d.type, d.lane, d.attempt, d.due_at, d.born_at,
                d.overdue_at, d.parked, None if d.parked is None else now, d.replay_of,
            )  # fmt: skip
            links += (original, d.id, now)
        made.append(original)
    run_batch(session, "resend_deliveries", deliveries)
    run_batch(session, "replayed", links)
    run_batch(session, "forget_dead_letters", made.copy())
    return made


def _look(
    session: SqliteSession, originals: Sequence[bytes], replacements: Sequence[Delivery]
) -> tuple[set[bytes], set[bytes], set[bytes]]:
    """Return the originals that can be sent again, those that were before, and the replacements that exist."""
    values: Values = []
    for original, replacement in zip(originals, replacements, strict=True):
        values += (original, replacement.id)
    can, done_before, born = set(), set(), set()
    for piece in batch("resend_look").pieces(values):
        for original, replacement, was_replayed, is_born in json.decode(session.value(*piece)):
            can.add(bytes.fromhex(original))
            if was_replayed:
                done_before.add(bytes.fromhex(original))
            if is_born:
                born.add(bytes.fromhex(replacement))
    return can, done_before, born


def due_now(session: SqliteSession, delivery: bytes, *, now: int) -> bool:
    with session.writing():
        return session.run(query("due_now"), (now, delivery)) > 0


def add_replay(session: SqliteSession, job: ReplayJob) -> None:
    with session.writing():
        session.run(query("replay_add"), columns(job))


def advance_replay(
    session: SqliteSession,
    before: ReplayJob,
    after: ReplayJob,
    originals: Sequence[bytes],
    replacements: Sequence[Delivery],
    *,
    now: int,
) -> ReplayJob | None:
    with session.writing():
        where = (before.id, before.position)
        step = (after.state, after.matched, before.created, after.finished_at, after.position)
        if not session.run(query("replay_advance"), (*step, *where)):
            return None
        made = _resend(session, originals, replacements, now=now, once=True)
        if made:
            session.run(query("replay_created"), (len(made), before.id))
    return replace(after, created=before.created + len(made))
