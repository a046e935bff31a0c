"""The broker's messages whose rows are being worked on: acknowledged when all of it is in the ledger."""

from __future__ import annotations

from collections.abc import Iterable

from surehook.ports.handoff import Parcel


class Opened:
    """A message whose rows are being worked on. `left`: its ids that are neither claimed nor dropped yet."""

    __slots__ = ("left", "open", "parcel")

    def __init__(self, message: Parcel, ids: list[bytes]) -> None:
        self.parcel = message
        self.left = ids
        self.open = 0  # rows in memory

    def ack_if_done(self) -> None:
        if not self.left and not self.open:
            self.parcel.ack()


class OpenedMessages:
    """Which message each row in memory came in, of both lanes."""

    def __init__(self) -> None:
        self._of_row: dict[bytes, Opened] = {}

    def put(self, delivery: bytes, opened: Opened) -> None:
        """A row of this message is in memory."""
        opened.open += 1
        self._of_row[delivery] = opened

    def let_go(self, ids: Iterable[bytes]) -> None:
        """These rows have left memory: recorded, parked or handed back."""
        for delivery in ids:
            opened = self._of_row.pop(delivery, None)
            if opened is not None:
                opened.open -= 1
                opened.ack_if_done()

    def compare(self, in_memory: set[bytes]) -> None:
        """The net: what left memory on a way that did not tell is let go."""
        self.let_go([delivery for delivery in self._of_row if delivery not in in_memory])

    def forget(self) -> None:
        """This node was evicted and its rows freed: they will be handed over anew."""
        self.let_go(list(self._of_row))
