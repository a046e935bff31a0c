"""Tell whether new requests are begun: not while the lease runs out, the disk is nearly full, or results pile up.

`Dispatch.paused` is set by whoever meets a reason. It is taken back here, with a beat or when results have been written,
where no reason is left.
"""

from __future__ import annotations

from surehook.delivery.dispatch import Dispatch
from surehook.delivery.node import Node
from surehook.delivery.pump import Pump
from surehook.delivery.record import Record
from surehook.delivery.refill import Refill
from surehook.delivery.settings import EngineSettings
from surehook.ports.reading import LedgerReading


class Pausing:
    """Sending stops and goes on."""

    def __init__(
        self,
        *,
        ledger: LedgerReading,
        settings: EngineSettings,
        node: Node,
        dispatch: Dispatch,
        pump: Pump,
        record: Record,
        refill: Refill,
    ) -> None:
        self._ledger = ledger
        self._settings = settings
        self._node = node
        self._dispatch = dispatch
        self._pump = pump
        self._record = record
        self._refill = refill

    def look(self) -> None:
        """A beat was committed, or the engine starts."""
        if self._is_short():
            self._dispatch.pause()
        elif self._dispatch.paused and self._node.running:
            self.resume()

    def resume(self) -> None:
        """Begin requests again, where nothing is in the way."""
        if (
            self._node.failure is None
            and self._record.backlog < self._settings.record_backlog
            and self._node.may_send()
            and not self._is_short()
        ):
            self._dispatch.go_on()
            self._refill.go_on()
            self._pump.pump()

    async def run(self) -> None:
        """Look whenever results were written while sending had stopped, for ever. Half of what may pile up goes first."""
        while True:
            await self._record.written.wait()
            self._record.written.clear()
            if (
                self._dispatch.paused
                and self._node.running
                and self._record.backlog < self._settings.record_backlog // 2
            ):
                self.resume()

    async def after_failure(self) -> None:
        """Begin nothing more once the ledger cannot be trusted."""
        await self._node.failed.wait()
        self._dispatch.pause()

    def _is_short(self) -> bool:
        """Tell whether results could fill what is left of the ledger's disk: below half of the floor nothing starts."""
        room = self._ledger.room()
        return room is not None and room.is_short
