"""Watches the free disk of the ledger: told when it falls to its floor and when it is above it again."""

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
        self._is_full = False

    def look(self) -> None:
        """Ask the system. Once a second, as often as the ledger itself does."""
        room = self._room()
        if room is None:
            return
        is_full = room.free_bytes < room.floor_bytes
        if is_full != self._is_full:
            self._is_full = is_full
            if is_full:
                self._telemetry.fact("disk.floor_reached", **structs.asdict(room))
            else:
                self._telemetry.fact("disk.floor_left", **structs.asdict(room))

    def reason(self) -> str | None:
        """Why no event is taken; None where there is room."""
        return (
            "the disk is at its floor: events are refused until some space is freed"
            if self._is_full
            else None
        )
