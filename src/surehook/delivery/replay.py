"""Replays: everything that a filter matches, delivered again, as a job that survives its walker.

A job walks the list of deliveries newest first, one bounded page at a time. What a page makes, how it counts and
how far the walk has come are one transaction, which goes through only from the place where the walker saw the
job last: of two nodes that walk one job the slower one stops, having written nothing. A job that stood still
from one look to the next has lost its walker, and whoever looks takes it over.

A job takes what had finished when it was asked for; otherwise it would meet its own replacements, whose ids lie
among the rows it walks, and never end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from surehook.core import ids, instants
from surehook.core.errors import Problem
from surehook.core.model import Delivery
from surehook.core.policy import Policy
from surehook.delivery.chores import Chores
from surehook.delivery.deliveries import policy_of, replacement
from surehook.delivery.loops import through_outages
from surehook.delivery.managing import Manager, new_id
from surehook.ports.reading import DeliveryFilter, DeliveryView, ReplayJob

PAGE_ROWS = 200  # deliveries looked at, and at most made, in one transaction
RUNNING_MAX = 16  # jobs at once
ANSWERED_S = 0.1  # what a dry run has not counted by then is counted after its answer
# Pages that a dry run counts before it writes down how far it is: a commit for each would be most of what it costs. Few
# enough that nobody takes it for one that has lost its walker.
COUNTED_PAGES = 10
# Of filters: versions before these were there pass them over.
LATER_FIELDS = frozenset({"status", "error", "receipt", "code", "correlation_id"})

log = logging.getLogger("surehook.delivery")


class _Walk:
    """A job on its way: as far as it is, and whether it goes on."""

    def __init__(self, job: ReplayJob) -> None:
        self.at = job
        self.over = asyncio.Event()


class Replays:
    """The jobs of this process."""

    def __init__(self, manager: Manager, chores: Chores) -> None:
        self._manager = manager
        self._chores = chores
        self._walking: set[bytes] = set()
        self._seen: dict[bytes, bytes | None] = {}  # others' jobs, and where they stood at the last look
        # Jobs read in turns: on one file whoever looks at a list waits for one page of one job at most.
        self._turn = asyncio.Lock()

    async def resume(self) -> int:
        """Go on at once with every unfinished job, where nobody else can be walking it; returns how many."""
        jobs = await self._manager.ledger.unfinished_replays()
        for job in jobs:
            self._begin(job)
        return len(jobs)

    async def look(self) -> None:
        """Take over what has stood still since the last look. Looks are seconds apart, pages are not."""
        jobs = await self._manager.ledger.unfinished_replays()
        before, self._seen = self._seen, {}
        for job in jobs:
            if job.id in self._walking:
                continue
            if job.id in before and before[job.id] == job.position:
                self._begin(job)
            else:
                self._seen[job.id] = job.position

    async def begin(self, given: Mapping[str, object], *, dry_run: bool) -> ReplayJob:
        """Start a job for a filter as `where` reads it. A short dry run is done when this returns, a long one goes on.

        Raises Problem `too_many_replays`.
        """
        manager = self._manager
        if len(await manager.ledger.unfinished_replays()) >= RUNNING_MAX:
            raise Problem(
                "too_many_replays",
                f"{RUNNING_MAX} replays are running",
                hint="wait until one is done",
                status=409,
            )
        now = manager.clock.now()
        job = ReplayJob(
            id=new_id(manager, now),
            filter=_kept(given),
            dry_run=dry_run,
            state="running",
            matched=0,
            created=0,
            created_at=now,
            finished_at=None,
            position=None,
        )
        await manager.ledger.add_replay(job)
        walk = _Walk(job)
        self._begin(job, walk)
        if dry_run:
            with suppress(TimeoutError):
                async with asyncio.timeout(ANSWERED_S):
                    await walk.over.wait()
        return walk.at if dry_run else job  # from memory: the ledger may be busy with our own page

    async def find(self, job: bytes) -> ReplayJob:
        found = await self._manager.ledger.replay(job)
        if found is None:
            raise Problem("not_found", "there is no replay with this id", status=404)
        return found

    def _begin(self, job: ReplayJob, walk: _Walk | None = None) -> None:
        """Begin a walk. One that cannot begin (the line is full, a shutdown) stands still, and is found by a look."""
        walk = walk or _Walk(job)
        self._chores.begin(lambda: self._walk(walk), name="replay", about=job.id)

    async def _walk(self, walk: _Walk) -> None:
        """Page after page to the end of the list, or until another node is ahead (or we are, by a commit whose answer
        was lost: then a look finds the job). Ledger trouble is waited out; anything else fails the job."""
        job = walk.at.id
        self._walking.add(job)
        try:
            while walk.at.state == "running":
                after = await self._step(walk.at)
                if after is None:
                    break
                walk.at = after
                await self._manager.clock.sleep(0)
        finally:
            self._walking.discard(job)
            walk.over.set()

    async def _step(self, job: ReplayJob) -> ReplayJob | None:
        try:
            return await through_outages(self._manager.clock, partial(self._page, job))
        except Exception:
            log.exception("replay %s failed", ids.text(ids.REPLAY, job.id))
            now = self._manager.clock.now()
            failed = replace(job, state="failed", finished_at=now)
            return await self._manager.ledger.advance_replay(job, failed, [], [], now=now)

    async def _page(self, job: ReplayJob) -> ReplayJob | None:
        """The job after one more page, a dry run after some more; None where another node has moved it."""
        manager = self._manager
        after, made = await self._look(job)
        for _ in range(COUNTED_PAGES - 1 if job.dry_run else 0):
            if after.state == "running":
                after, _made = await self._look(after)
        originals = [one.replay_of for one in made if one.replay_of is not None]
        moved = await manager.ledger.advance_replay(job, after, originals, made, now=manager.clock.now())
        if moved is not None and moved.created > job.created:
            manager.wake()
        return moved

    async def _look(self, job: ReplayJob) -> tuple[ReplayJob, list[Delivery]]:
        """The job after the next page, and what is to be made of the page."""
        manager = self._manager
        where = filter_of(given_of(job))
        async with self._turn:
            page = await manager.ledger.deliveries(where, limit=PAGE_ROWS, after=job.position)
        chosen = [seen for seen in page.data if _is_due_again(seen, job)]
        made: list[Delivery] = []
        if job.dry_run:  # by memory: reading each one's endpoint and type took five sixths of a count
            chosen = [seen for seen in chosen if seen.endpoint in manager.directory.routes]
        else:
            made = await self._replacements(chosen)
        is_over = page.next is None
        after = replace(
            job,
            matched=job.matched + len(chosen if job.dry_run else made),
            position=page.next,
            state="done" if is_over else "running",
            finished_at=manager.clock.now() if is_over else None,
        )
        return after, made

    async def _replacements(self, chosen: list[DeliveryView]) -> list[Delivery]:
        """New deliveries, with the policies read once a page; those whose endpoint is gone are left out."""
        now = self._manager.clock.now()
        policies: dict[tuple[bytes, str], Policy | None] = {}
        made = []
        for seen in chosen:
            key = (seen.endpoint, seen.type)
            if key not in policies:
                policies[key] = await policy_of(self._manager, *key)
            policy = policies[key]
            if policy is not None:
                # Unheld at birth: whoever claims the row gets the bytes from the ledger.
                made.append(replacement(self._manager, seen, policy, body=b"", now=now))
        return made


def _is_due_again(seen: DeliveryView, job: ReplayJob) -> bool:
    """Tell whether it had finished by then, and nobody has done anything about it since."""
    is_finished = seen.finished_at is not None and seen.finished_at <= job.created_at
    return is_finished and seen.replayed_by is None and seen.dismissal is None


def _kept(given: Mapping[str, object]) -> bytes:
    """A filter as the ledger keeps it: in a list, where it has a field that versions before this one pass over. One of them
    that takes the job over then fails it, and does not deliver again what was not asked for."""
    return msgspec.json.encode([given] if given.keys() & LATER_FIELDS else given)


def given_of(job: ReplayJob) -> dict[str, object]:
    """The filter of a job, as it was asked for."""
    kept = msgspec.json.decode(job.filter)
    given: dict[str, object] = kept[0] if isinstance(kept, list) else kept
    return given


def filter_of(given: Mapping[str, Any]) -> DeliveryFilter:
    """The filter that a job's JSON means: ids and instants as the API writes them. Raises Problem."""
    endpoint = given.get("endpoint")
    raw = None if endpoint is None else ids.try_parse(ids.ENDPOINT, endpoint)
    if endpoint is not None and raw is None:
        raise Problem("bad_id", "not an endpoint's id", field="filter.endpoint")
    return DeliveryFilter(
        tenant=given.get("tenant"),
        endpoint=raw,
        type=given.get("type"),
        subject=given.get("subject"),
        state=given.get("state"),
        outcome=given.get("outcome"),
        status=given.get("status"),
        error=given.get("error"),
        receipt=given.get("receipt"),
        code=given.get("code"),
        correlation_id=given.get("correlation_id"),
        since=_instant(given, "since"),
        until=_instant(given, "until"),
    )


def _instant(given: Mapping[str, Any], name: str) -> int | None:
    written = given.get(name)
    return None if written is None else instants.parse(written, field=f"filter.{name}")
