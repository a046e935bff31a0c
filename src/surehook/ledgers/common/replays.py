"""Replay jobs: a row each, to values and back."""

from __future__ import annotations

from surehook.ledgers.common.statements import Reading, Row, Statement, shared
from surehook.ports.reading import ReplayJob


def replay(job: bytes) -> Reading[ReplayJob | None]:
    found = yield Statement(shared("replay"), (job,))
    return _job(found[0]) if found else None


def unfinished_replays() -> Reading[list[ReplayJob]]:
    return [_job(row) for row in (yield Statement(shared("replays_running")))]


def columns(job: ReplayJob) -> tuple[object, ...]:
    """Return the values of a job's row, in the order of its columns."""
    return (
        job.id, job.filter, job.dry_run, job.state, job.matched, job.created, job.created_at, job.finished_at,
        job.position,
    )  # fmt: skip


def _job(row: Row) -> ReplayJob:
    id, filter, dry_run, *rest = row
    # SQLite keeps a truth value as a number.
    return ReplayJob(id, filter, bool(dry_run), *rest)
