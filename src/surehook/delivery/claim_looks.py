"""Reasons for a claim, lane by lane, as everybody tells them who has one. `claim.py` looks when something does.

The loop looks at a lane when it is told to (`wake` by this process, `woken` by another), when a retry that it
knows of comes near, and at every poll: what nobody told it of is found by then. A hint from another process
reaches every worker, and all but one of them may come too late. Who comes too late answers the next hint a
little later, up to `QUIET_MOST_S`; who finds work answers at once again. So an idle worker asks for nothing at
most sixteen times a second, whatever the others accept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from surehook.core.model import Delivery, Lane
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.node import Node
from surehook.delivery.settings import EngineSettings
from surehook.ports.clock import Clock

BATCH_LEAST = 64  # rows: a claim's fixed cost is small beside theirs
AHEAD_LEAST = 32  # rows beyond the free slots: what is sent while the next claim is under way
BESIDE_FIRST_S = 0.05  # between looks past those who have enough
QUIET_FIRST_S, QUIET_MOST_S = 0.002, 0.064  # after claims that came too late
CLAIM_BYTES = 16 << 20  # bodies in one claim: the ledger's answer is in memory twice for a moment


class Look:
    """Knowledge of the loop about one lane. Boot times in seconds, due times in Unix milliseconds."""

    __slots__ = (
        "at", "batch", "beside_s", "crowd", "due", "empty_at", "far_at", "for_hint", "full", "hint_at", "hinted",
        "quiet_s", "starved",
    )  # fmt: skip

    def __init__(self) -> None:
        self.at: float | None = 0.0  # look from then on; None: nothing calls for it
        self.due: int | None = None  # the earliest retry that is known of
        self.batch = BATCH_LEAST
        self.beside_s = BESIDE_FIRST_S
        self.far_at = 0.0  # until then looks past those who have enough see what is fresh alone
        # Tenants that fill claims in the order of due times: what others have lies behind their rows.
        self.crowd: tuple[str, ...] = ()
        self.hint_at: float | None = None  # look for a hint from then on
        self.for_hint = False  # the last look was for a hint, past the crowd: now it is the crowd's turn
        self.hinted = False  # it is another process's hint that calls
        self.quiet_s = 0.0
        self.empty_at = 0.0  # when a hint last led to nothing
        self.full: dict[EndpointState, None] = {}  # endpoints that have enough in memory, as an ordered set
        self.starved = False  # there may be more, and the slots have enough for now

    def is_behind_crowd(self, now: float) -> bool:
        """Tell whether a claim in the order of due times would bring the crowd's rows before what a hint tells of."""
        return bool(self.crowd) and self.hint_at is not None and self.hint_at <= now

    def by(self, at: float) -> None:
        """Look then at the latest. Who called while a look was under way may have meant something that it could not see
        yet, and has a look of their own."""
        if self.at is None or at < self.at:
            self.at = at


class ClaimLooks:
    """The lanes that this node delivers, and what is known of each."""

    def __init__(self, *, clock: Clock, settings: EngineSettings, node: Node, dispatch: Dispatch) -> None:
        self._clock = clock
        self._settings = settings
        self._node = node
        self._dispatch = dispatch
        self.called = asyncio.Event()
        self._is_barred = False  # nothing may be claimed, whatever calls for a look
        # The patient lane first: what is due there has waited already.
        self.of_lane: dict[Lane, Look] = {lane: Look() for lane in sorted(settings.lanes, reverse=True)}
        # Endpoints whose rows are on their way back, until memory has caught up.
        self.unknown: set[bytes] = set()

    def wake(self) -> None:
        """There may be due work in the ledger: look now, in every lane."""
        for look in self.of_lane.values():
            look.at, look.hinted = self._clock.boot(), False
            look.far_at = 0.0  # it may lie anywhere
        self.called.set()

    def woken(self, lane: Lane) -> None:
        """Another process says there is work: look, but not at once where the last such looks were in vain."""
        look = self.of_lane.get(lane)
        if look is None:
            return
        at = max(self._clock.boot(), look.empty_at + look.quiet_s)
        if look.hint_at is None:
            look.hint_at = at
        if look.at is None or at < look.at:
            look.at, look.hinted = at, True
            self.called.set()

    def hint(self, lane: Lane, due_at: int) -> None:
        """A retry was written for this instant."""
        look = self.of_lane[lane]
        if look.due is None or due_at < look.due:
            look.due = due_at
            if due_at - self._clock.now() < self._settings.poll_s * 1000:
                self.called.set()

    def freed(self) -> None:
        """Results are in the ledger, or what was parked: slots are free again, or memory."""
        if self._is_barred and self.has_room():
            self.called.set()
        for lane, look in self.of_lane.items():
            if look.starved and self._has_use(lane):
                look.starved, look.at = False, self._clock.boot()
                self.called.set()
        if self._dispatch.take_spilled():
            self.wake()

    def has_room(self) -> bool:
        """Tell whether this node can use rows at all now."""
        return self._node.running and not self._dispatch.paused and self._dispatch.memory.has_room()

    def bar(self, is_barred: bool) -> None:
        """Nothing may be claimed for want of room: `freed` says when there is some."""
        self._is_barred = is_barred

    def are_unknown(self, rows: Iterable[Delivery]) -> None:
        """Memory does not know their endpoints: those are passed over until it does."""
        self.unknown.update(delivery.endpoint for delivery in rows)

    def known(self, rows: Iterable[Delivery]) -> None:
        """Memory has caught up with unknown endpoints, or their rows have ended: their endpoints are passed over no longer."""
        self.unknown.difference_update(delivery.endpoint for delivery in rows)

    def free(self, lane: Lane) -> int:
        """Number of rows that the lane could start, and a few to have at hand."""
        state = self._dispatch.lanes[lane]
        return max(0, state.slots - state.busy) + AHEAD_LEAST

    def _has_use(self, lane: Lane) -> bool:
        """Tell whether the lane's slots can use a batch of rows soon, whosever they are."""
        return not self._dispatch.has_startable(lane, self.free(lane) - AHEAD_LEAST + 1)
