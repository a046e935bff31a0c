"""Replays: everything that a filter matches, delivered again, as a job that survives a restart.

A job walks the list of deliveries newest first, one bounded page at a time, and writes after each page how far
it has come. What it makes, it makes at most once: a delivery that has been replayed is not replayed by a job
again, so the page that a crash interrupted can be walked twice. A job takes what had finished when it was asked
for; otherwise it would meet its own replacements, whose ids lie among the rows it walks, and never end.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from surehook.core import ids, instants
from surehook.core.errors import LedgerUnavailable, Problem
from surehook.core.model import Delivery
from surehook.core.policy import Policy
from surehook.delivery.chores import Chores
from surehook.delivery.managing import Manager, new_id
from surehook.delivery.resend import policy_of, replacement, write
from surehook.ports.reading import DeliveryFilter, DeliveryView, ReplayJob

PAGE_ROWS = 200  # deliveries looked at, and at most made, in one transaction
RUNNING_MAX = 16  # jobs at once
COUNTED_AT_ONCE = 20  # pages a dry run walks before it is answered; a longer one goes on in the background
TRY_AGAIN_S = 1.0  # while the ledger is away

log = logging.getLogger("surehook.delivery")


class Replays:
    """The jobs of this process."""

    def __init__(self, manager: Manager, chores: Chores) -> None:
        self._manager = manager
        self._chores = chores

    async def resume(self) -> int:
        """Go on with the jobs that a restart interrupted; returns how many."""
        jobs = await self._manager.ledger.unfinished_replays()
        for job in jobs:
            self._chores.begin(self._walk(job), name="replay")
        return len(jobs)

    async def begin(self, given: Mapping[str, Any], *, dry_run: bool) -> ReplayJob:
        """Start a job for a filter as `where` reads it. A short dry run is done when this returns.

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
            filter=msgspec.json.encode(given),
            dry_run=dry_run,
            state="running",
            matched=0,
            created=0,
            created_at=now,
            finished_at=None,
            position=None,
        )
        await manager.ledger.add_replay(job)
        for _ in range(COUNTED_AT_ONCE if dry_run else 0):
            job = await self._page(job)
            if job.state != "running":
                return job
        self._chores.begin(self._walk(job), name="replay")
        return job

    async def find(self, job: bytes) -> ReplayJob:
        found = await self._manager.ledger.replay(job)
        if found is None:
            raise Problem("not_found", "there is no replay with this id", status=404)
        return found

    async def _walk(self, job: ReplayJob) -> None:
        """Page after page to the end of the list. Ledger trouble is waited out; anything else fails the job."""
        while job.state == "running":
            try:
                job = await self._page(job)
            except LedgerUnavailable:
                await self._manager.clock.sleep(TRY_AGAIN_S)
            except Exception:
                log.exception("replay %s failed", ids.text(ids.REPLAY, job.id))
                job = replace(job, state="failed", finished_at=self._manager.clock.now())
                await self._manager.ledger.update_replay(job)
            await self._manager.clock.sleep(0)

    async def _page(self, job: ReplayJob) -> ReplayJob:
        manager = self._manager
        where = filter_of(msgspec.json.decode(job.filter))
        page = await manager.ledger.deliveries(where, limit=PAGE_ROWS, after=job.position)
        chosen = [seen for seen in page.data if _is_due_again(seen, job)]
        replacements = await self._replacements(chosen)
        created = 0
        if replacements and not job.dry_run:
            originals = [made.replay_of for made in replacements if made.replay_of is not None]
            created = len(await write(manager, originals, replacements, once=True))
            manager.wake()
        job = replace(
            job,
            matched=job.matched + len(replacements),
            created=job.created + created,
            position=page.next,
            state="running" if page.next is not None else "done",
            finished_at=None if page.next is not None else manager.clock.now(),
        )
        await manager.ledger.update_replay(job)
        return job

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
                # Unheld at birth: whoever claims the row gets the bytes from the book.
                made.append(replacement(self._manager, seen, policy, body=b"", now=now))
        return made


def _is_due_again(seen: DeliveryView, job: ReplayJob) -> bool:
    return seen.finished_at is not None and seen.finished_at <= job.created_at and seen.replayed_by is None


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
        since=_instant(given, "since"),
        until=_instant(given, "until"),
    )


def _instant(given: Mapping[str, Any], name: str) -> int | None:
    written = given.get(name)
    return None if written is None else instants.parse(written, field=f"filter.{name}")
