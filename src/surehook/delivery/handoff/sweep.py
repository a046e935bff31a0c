"""Handing over what nobody else does: due retries, what was freed or handed back, what was lost on its way.

One node of all sweeps (the ledger says which), a few times a second and a little before rows are due, in
batches bounded by what still fits on the way out. Now and then it sends a watermark through each queue
(ports/handoff.py); the less often the more of them are under way, so that a queue that nobody reads gathers
a message a minute and not more.
"""

from __future__ import annotations

from surehook.core.model import Lane
from surehook.delivery.handoff.send import Send
from surehook.delivery.node import Node
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock
from surehook.ports.handoff import Handing, LaneMarks

SWEEP_S = 0.2  # below `claim_ahead_s`, so that a retry is with a worker before it is due
STANDBY_S = 1.0  # while another node sweeps
SWEEP_ROWS = 2_000  # rows marked in one transaction
WATERMARK_S = 5.0  # what was lost is found after about two of these, when queues are short
WATERMARK_MOST_S = 60.0
WATERMARKS_OFTEN = 3  # under way before they become rarer: some may be lost


class Sweep:
    """Rounds of sweeping one lane. The caller loops, and meets the ledger's errors."""

    def __init__(
        self,
        lane: Lane,
        *,
        handing: Handing,
        clock: Clock,
        settings: EngineSettings,
        send: Send,
        node: Node,
    ) -> None:
        self._lane = lane
        self._handing = handing
        self._clock = clock
        self._settings = settings
        self._send = send
        self._node = node
        self._watermark_at = 0.0  # boot time of the next watermark
        self.handed_over = 0  # rows marked here since the start

    async def round(self, marks: LaneMarks) -> float:
        """Hand over what is due; returns how many seconds may pass until the next round."""
        limit = min(SWEEP_ROWS, self._send.room(self._lane))
        if limit == 0:
            return SWEEP_S
        now = self._clock.now()
        due_by = now + int(self._settings.claim_ahead_s * 1000)
        ids = await self._handing.hand_over(
            self._lane, node=self._node.id, limit=limit, due_by=due_by, now=now
        )
        if ids is None:
            return STANDBY_S
        if ids:
            self._send.put(self._lane, ids)
            self.handed_over += len(ids)
        await self._watermark(marks)
        return 0.0 if len(ids) == limit else SWEEP_S

    async def _watermark(self, marks: LaneMarks) -> None:
        at = self._clock.boot()
        if at < self._watermark_at:
            return
        epoch = await self._handing.end_epoch(self._lane, node=self._node.id, now=self._clock.now())
        if epoch is not None:
            self._send.put_watermark(self._lane, epoch)
        self._watermark_at = at + min(
            WATERMARK_MOST_S, WATERMARK_S * max(1, marks.under_way - WATERMARKS_OFTEN)
        )
