"""The removal of what is past its retention: where its walk is, and what a part of it removed."""

from __future__ import annotations

from msgspec import Struct


class Pruned(Struct, frozen=True):
    """Rows that retention removed: requests with their bodies, and dedupe records with their runs."""

    requests: int
    events: int


Place = tuple[int, bytes]  # when a row came, and its id


class PrunePlace(Struct, frozen=True, kw_only=True):
    """The place of a walk of retention: the last row of each table that was looked at; None: there are no more."""

    requests: Place | None = (0, b"")
    events: Place | None = (0, b"")

    @property
    def is_end(self) -> bool:
        return self.requests is None and self.events is None


FROM_THE_START = PrunePlace()


class PrunedPart(Struct, frozen=True):
    """A part of a walk of retention: what it removed, and where the next part begins."""

    removed: Pruned
    place: PrunePlace
