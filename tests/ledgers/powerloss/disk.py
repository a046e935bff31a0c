"""A disk that loses power.

A file has bytes that a reader sees now, and pages that were written since its last sync. A sync makes
them safe; losing power makes each of them, sector by sector, whatever chance says. Pure: no SQLite here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Literal

SECTOR = 512  # what a disk writes at once, at best

Fault = Literal["write", "sync", "full"]


class PowerLost(Exception):
    """The machine stopped at this call; nothing on this disk answers any more."""


class InputOutputError(Exception):
    """EIO."""


class DiskFull(Exception):
    """ENOSPC."""


@dataclass
class File:
    """`now` is what a reader sees; `safe` what is on the platter; `unsynced` the changes on their way there."""

    now: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    unsynced: list[tuple[int, bytes] | int] = field(default_factory=list)  # (offset, data), or a new size
    is_named: bool = False  # its name is safe in the directory
    names: bool = False  # its first sync makes the whole directory safe

    def write(self, offset: int, data: bytes) -> None:
        _put(self.now, offset, data)
        self.unsynced.append((offset, bytes(data)))

    def truncate(self, size: int) -> None:
        del self.now[size:]
        self.unsynced.append(size)

    def sync(self) -> None:
        for change in self.unsynced:
            if isinstance(change, int):
                del self.safe[change:]
            else:
                _put(self.safe, *change)
        self.unsynced.clear()

    def forget_unsynced(self) -> None:
        """What a kernel does after a failed sync: the pages count as clean, and readers still see them."""
        self.unsynced.clear()


@dataclass
class Plan:
    """What goes wrong, by the number of the call (from 1) at which it does; None: never.

    power_lost_at   the call, of any kind, that is the last
    lost_at_sync    or the sync that is, counted among syncs: where a commit is made or not
    sync_completes  the last call, if a sync, has done its work when the power goes: only its answer is missing
    fault_at    the write or sync that fails from then on, for `fault_calls` calls of its kind
    lies        syncs answer at once and do nothing
    """

    power_lost_at: int | None = None
    lost_at_sync: int | None = None
    sync_completes: bool = False
    fault: Fault | None = None
    fault_at: int = 0
    fault_calls: int = 1
    lies: bool = False


class Disk:
    """Files by name. Every call that touches one is counted, and may be the last."""

    def __init__(self, files: dict[str, bytes] | None = None, plan: Plan | None = None) -> None:
        self.files = {
            name: File(bytearray(data), bytearray(data), is_named=True)
            for name, data in (files or {}).items()
        }
        self.plan = plan or Plan()
        self.calls = 0
        self.syncs = 0
        self.is_dead = False
        self.faults = 0
        self._deleted: dict[str, File] = {}  # not yet safe: may come back

    # -- calls ------------------------------------------------------------------------------------------

    def read(self, name: str, offset: int, size: int) -> bytes:
        self._call(None)
        return bytes(self.files[name].now[offset : offset + size])

    def write(self, name: str, offset: int, data: bytes) -> None:
        self._call("write")
        self.files[name].write(offset, data)

    def truncate(self, name: str, size: int) -> None:
        self._call("write")
        self.files[name].truncate(size)

    def sync(self, name: str) -> None:
        if self.is_dead:
            raise PowerLost
        self.syncs += 1
        file = self.files[name]
        try:
            if self.syncs == self.plan.lost_at_sync:
                self.die()
            self._call("sync", file=file)
        except PowerLost:
            if self.plan.sync_completes:
                self._sync(file)
            raise
        self._sync(file)

    def _sync(self, file: File) -> None:
        if self.plan.lies:
            return
        file.sync()
        if file.names and not file.is_named:
            self._sync_directory()

    def create(self, name: str, *, names: bool) -> None:
        """A new file. `names`: its first sync also syncs the directory, as SQLite's own file systems do for
        journals and logs."""
        self._call("write")
        self.files[name] = File(names=names)

    def delete(self, name: str, *, sync_directory: bool) -> None:
        self._call("write")
        gone = self.files.pop(name)
        if gone.is_named:
            self._deleted[name] = gone
        if sync_directory and not self.plan.lies:
            self._sync_directory()

    def exists(self, name: str) -> bool:
        self._call(None)
        return name in self.files

    def size(self, name: str) -> int:
        self._call(None)
        return len(self.files[name].now)

    def _sync_directory(self) -> None:
        self._deleted.clear()
        for file in self.files.values():
            file.is_named = True

    def die(self) -> None:
        self.is_dead = True

    # -- faults -----------------------------------------------------------------------------------------

    def _call(self, kind: Literal["write", "sync"] | None, *, file: File | None = None) -> None:
        if self.is_dead:
            raise PowerLost
        self.calls += 1
        plan = self.plan
        if self.calls == plan.power_lost_at:
            self.die()
            raise PowerLost
        if kind is None or self.calls < plan.fault_at or self.faults >= plan.fault_calls:
            return
        if plan.fault == "full" and kind == "write":
            self.faults += 1
            raise DiskFull
        if plan.fault == kind:
            self.faults += 1
            if file is not None:
                file.forget_unsynced()
            raise InputOutputError

    # -- what is left -----------------------------------------------------------------------------------

    def after_power_loss(self, chance: Random) -> dict[str, bytes]:
        """The files as they are found afterwards."""
        left: dict[str, bytes] = {}
        for name, file in self.files.items():
            if file.is_named or chance.random() < 0.5:
                left[name] = _found(file, chance)
        for name, file in self._deleted.items():
            if name not in left and chance.random() < 0.5:
                left[name] = _found(file, chance)
        return left


def _found(file: File, chance: Random) -> bytes:
    """Some of the unsynced sectors, in no order, some of them torn.

    How much survives is drawn once per file, so that nothing, nearly nothing, half and all come up often.
    """
    share = chance.choice((0.0, 0.05, 0.5, 0.95, 1.0))
    torn_share = chance.choice((0.0, 0.0, 0.1, 0.5))
    found = bytearray(file.safe)
    changes = list(file.unsynced)
    if chance.random() < 0.3:
        chance.shuffle(changes)  # the disk writes in an order of its own
    for change in changes:
        if isinstance(change, int):
            if chance.random() < share:
                del found[change:]
            continue
        offset, data = change
        for start, piece in _sectors(offset, data):
            if chance.random() >= share:
                continue
            if chance.random() < torn_share:
                cut = chance.randrange(len(piece) + 1)
                piece = piece[:cut] + _garbage_or_old(found, start + cut, len(piece) - cut, chance)
            _put(found, start, piece, filler=chance)
    return bytes(found)


def _sectors(offset: int, data: bytes) -> list[tuple[int, bytes]]:
    """The data cut where sectors end."""
    pieces = []
    at = 0
    while at < len(data):
        room = SECTOR - (offset + at) % SECTOR
        pieces.append((offset + at, data[at : at + room]))
        at += room
    return pieces


def _garbage_or_old(found: bytearray, start: int, size: int, chance: Random) -> bytes:
    old = bytes(found[start : start + size])
    return old + chance.randbytes(size - len(old))


def _put(into: bytearray, offset: int, data: bytes, *, filler: Random | None = None) -> None:
    """Write, growing the file; a gap is zeros, or garbage where the disk was never told what is there."""
    gap = offset - len(into)
    if gap > 0:
        into.extend(filler.randbytes(gap) if filler is not None and filler.random() < 0.5 else bytes(gap))
    into[offset : offset + len(data)] = data
