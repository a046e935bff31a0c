"""Deliver again: single deliveries, jobs, dead letters that are put away."""

from __future__ import annotations

from msgspec.structs import replace

from lab.ledger.hooks import Hooked, reads, writes
from lab.ledger.rows import Story, take_in
from surehook.core.model import Delivery
from surehook.ports.reading import Dismissal, ReplayJob


class Replaying(Hooked):
    @writes
    def dismiss(self, delivery: bytes, *, note: str, now: int) -> bool:
        story = self.book.stories.get(delivery)
        if story is None or not story.is_dead_letter:
            return False
        story.dismissal = Dismissal(note, now)
        self._no_dead_letter(story)
        return True

    @writes
    def resend(
        self, originals: list[bytes], replacements: list[Delivery], *, now: int, once: bool = False
    ) -> list[bytes]:
        return self._resend(originals, replacements, now=now, once=once)

    def _resend(
        self, originals: list[bytes], replacements: list[Delivery], *, now: int, once: bool
    ) -> list[bytes]:
        made = []
        for original, replacement in zip(originals, replacements, strict=True):
            story = self.book.stories.get(original)
            if story is None or not self._can_resend(story):
                continue
            if replacement.id in self.book.history:  # written by a commit whose answer was lost
                made.append(original)
                continue
            if once and story.replayed_by is not None:
                continue
            self.book.add_row(take_in(replacement, node=None, now=now))
            was_dead_letter = story.is_dead_letter
            story.replayed_by = replacement.id
            if was_dead_letter:
                self._no_dead_letter(story)
            made.append(original)
        return made

    @writes
    def due_now(self, delivery: bytes, *, now: int) -> bool:
        row = self.book.rows.get(delivery)
        if row is None or row.holder is not None:
            return False
        with self.book.moving(row):
            row.due_at = min(row.due_at, now)
        return True

    @writes
    def add_replay(self, job: ReplayJob) -> None:
        self.book.replays[job.id] = job

    @writes
    def advance_replay(
        self,
        before: ReplayJob,
        after: ReplayJob,
        originals: list[bytes],
        replacements: list[Delivery],
        *,
        now: int,
    ) -> ReplayJob | None:
        job = self.book.replays.get(before.id)
        if job is None or job.state != "running" or job.position != before.position:
            return None
        made = self._resend(originals, replacements, now=now, once=True)
        moved = replace(after, created=before.created + len(made))
        self.book.replays[job.id] = moved
        return moved

    @reads
    def replay(self, job: bytes) -> ReplayJob | None:
        return self.book.replays.get(job)

    @reads
    def unfinished_replays(self) -> list[ReplayJob]:
        return [job for _, job in sorted(self.book.replays.items()) if job.state == "running"]

    def _can_resend(self, story: Story) -> bool:
        """Its endpoint is there, and its event with the bytes."""
        event = self.book.events.get(story.event)
        return story.endpoint in self.book.endpoints and event is not None and event.body != b""

    def _no_dead_letter(self, story: Story) -> None:
        self.book.dead_letters.discard(story.id)
        story.request_headers = None
        self.book.release_event(story.event)
