"""This process among the nodes of its ledger: its id, its lease, its life and its failure.

A node that was buried forgets its memory and begins again under a new id. A ledger that cannot be trusted any more
ends the engine (`failure` says why): the process should stop and be started again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from surehook.core import ids
from surehook.core.errors import NodeBuried
from surehook.delivery.around import Host
from surehook.delivery.book_clock import BookClock
from surehook.delivery.heartbeat import Heartbeat
from surehook.delivery.loops import Loops
from surehook.delivery.settings import EngineSettings
from surehook.ports.entropy import Entropy
from surehook.ports.ledger import Ledger
from surehook.ports.telemetry import Telemetry


class ThisNode:
    """`forget` drops what memory holds, as others have it now; `begun` is called when a new life has begun, `freed` when
    rows of the dead are ready for everybody, `beaten` after each beat."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        clock: BookClock,
        entropy: Entropy,
        settings: EngineSettings,
        host: Host,
        telemetry: Telemetry,
        loops: Loops,
        sole: bool,
        forget: Callable[[], None],
        begun: Callable[[], None],
        freed: Callable[[], None],
        beaten: Callable[[], None],
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._entropy = entropy
        self._host = host
        self._telemetry = telemetry
        self._loops = loops
        self._sole = sole
        self._forget = forget
        self._begun = begun
        self._freed = freed
        self.buried: Callable[[], None] = lambda: None  # what others knew is gone with them
        self._id = b""
        self._reborn = False  # a burial is being answered
        self.running = False
        self.failure: str | None = None
        self.failed = asyncio.Event()
        self.heartbeat = Heartbeat(
            ledger=ledger, clock=clock, settings=settings, node=self.id, dead=self._others_died, beaten=beaten,
            host=host,
        )  # fmt: skip

    def id(self) -> bytes:
        """The id of this life; empty before the first."""
        return self._id

    async def enter(self) -> None:
        """Begin a life: a row in the ledger, the burial of those who are seen to be dead, a first beat.

        Until the ledger has the new id, and from before anything is waited for, this node goes by an id that nobody ever
        enters. By it is told what was asked in a former life and is heard from now on; and what is asked in between, and
        refused, speaks of that id, however late it is heard, and not of the life that has begun."""
        former, self._id = self._id, self._new_id()
        await self.heartbeat.ask_time()
        now = self._clock.now()
        node = self._host.this_node(self._new_id(), now=now)
        others = await self._ledger.nodes()
        try:
            await self._ledger.enter(node, now=now)
        finally:
            self._id = node.id  # also where it is in doubt: the next beat tells
        dead = [o.id for o in others if self._sole or o.id == former or self._host.is_gone(o)]
        if dead:
            await self._bury(dead, {})
        await self.heartbeat.beat()

    def fail(self, error: BaseException) -> None:
        """The ledger said no for good (broken), or this node was buried: it begins again under a new id, or has nothing left
        to hand back where it is leaving."""
        if isinstance(error, NodeBuried):
            if error.node != self._id or self._reborn:
                return  # a former one was, or it was heard already
            if not self.running:
                self._forget()
                return
            self._reborn = True
            self._loops.do("begin again", self._begin_again)
            return
        if self.failure is None:
            self.failure = str(error) or type(error).__name__
            self._telemetry.fact("engine.failed", error=self.failure)
        self.failed.set()

    async def _begin_again(self) -> None:
        """Others judged this node dead and freed its work: forget it, and enter under a new id."""
        self._telemetry.fact("node.buried", node=ids.text(ids.NODE, self._id))
        self._forget()
        self.heartbeat.restart()
        try:
            await self.enter()
        finally:
            self._reborn = False
        self._begun()

    def _new_id(self) -> bytes:
        return ids.uuid7(self._clock.now(), self._entropy.bits(10))

    def _others_died(self, nodes: list[bytes], judged: Mapping[bytes, int]) -> None:
        self._loops.do("bury", lambda: self._bury(nodes, judged))

    async def _bury(self, nodes: list[bytes], judged: Mapping[bytes, int]) -> None:
        """Free what dead nodes hold."""
        burial = await self._ledger.bury(nodes, now=self._clock.now(), judged=judged)
        self._telemetry.fact("nodes.buried", nodes=len(burial.nodes), freed=burial.freed)
        if burial.nodes:
            self.buried()
        if burial.freed:
            self._freed()
