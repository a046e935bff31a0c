"""Watch over the free disk of the ledger: reports when it falls to its floor, or to half of it, and when it is above again."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from surehook.ports.reading import Room
from surehook.ports.telemetry import Telemetry


class DiskWatch:
    """`room`: what is free now; None where this machine cannot tell."""

    def __init__(self, room: Callable[[], Room | None], telemetry: Telemetry) -> None:
        self._room = room
        self._telemetry = telemetry
        self._is_low = self._is_short = False

    def look(self) -> None:
        """Ask the system. Once a second, as often as the ledger itself does."""
        room = self._room()
        if room is None:
            return
        was_low, was_short = self._is_low, self._is_short
        self._is_low, self._is_short = room.is_low, room.is_short
        told = structs.asdict(room)
        if room.is_low and not was_low:
            self._telemetry.fact("disk.floor_reached", **told)
        if room.is_short and not was_short:
            self._telemetry.fact("disk.sending_paused", **told)
        if was_short and not room.is_short:
            self._telemetry.fact("disk.sending_resumed", **told)
        if was_low and not room.is_low:
            self._telemetry.fact("disk.floor_left", **told)

    def reason(self) -> str | None:
        """The reason why no event is taken; None if there is room."""
        if self._is_short:
            return "the disk is below half of its floor: events are refused, and nothing is sent, until some space is freed"
        if self._is_low:
            return "the disk is at its floor: events are refused until some space is freed"
        return None
