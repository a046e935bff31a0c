"""The database file: served by one process at a time, on a local disk, with space left.

The lock is an OS lock on a side file, held for as long as the process serves. It cannot be on the database itself:
SQLite's own locks there are dropped as soon as the process closes any descriptor of the file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from pathlib import Path

from surehook.core.errors import LedgerBroken, LedgerFull, SettingsError, SurehookError
from surehook.ports.reading import Room

KEY = "database_url"
SQLITE = b"SQLite format 3\0"
# Below so many free bytes no new work is accepted; see ports.reading.Room.
FLOOR_BYTES = 64 * 1024 * 1024
LOOK_EVERY_S = 1.0
# File systems over a network (or a virtual machine's border): no shared memory, and locks that lie.
NETWORK_KINDS = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ncpfs", "ceph", "glusterfs", "lustre", "beegfs",
     "fuse.sshfs", "fuse.glusterfs", "fuse.s3fs", "fuse.rclone", "fuse.cephfs", "davfs", "fuse.davfs2")
)  # fmt: skip
MOUNTS = Path("/proc/self/mountinfo")


class DatabaseFile:
    """The file from `take` to `leave`: its lock, its identity and the free space beside it."""

    def __init__(self, path: str, *, floor_bytes: int) -> None:
        # The lock lies beside the file itself, not beside a link to it.
        self._path = Path(path).resolve()
        self._floor_bytes = floor_bytes
        self._lock: int | None = None
        self._file: tuple[int, int] | None = None
        self._looked_at = float("-inf")
        self._free_bytes = 0

    def take(self) -> None:
        """Lock the file, and create it if there is none. Raises SettingsError if it cannot serve."""
        folder = self._path.parent
        if not folder.is_dir():
            raise SettingsError(KEY, f"there is no folder {folder}", hint="make it first")
        kind = mount_kind(folder)
        if kind in NETWORK_KINDS:
            raise SettingsError(
                KEY,
                f"{folder} is on a network file system ({kind}), where SQLite cannot keep its promises",
                hint="use a local disk, or PostgreSQL",
            )
        _refuse_another_file(self._path)
        self._take_lock()
        try:
            # Created here so that nobody else can ever read it: SQLite would leave that to the umask.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            self.leave()
            raise _refused(self._path, error) from error
        self._file = _identity(self._path)

    def leave(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def check_room(self) -> None:
        """Raise LedgerFull if the free space is below the floor. Asks the system at most once a second."""
        self._look()
        if self._free_bytes < self._floor_bytes:
            raise LedgerFull(
                f"{self._free_bytes} bytes are free, fewer than the floor of {self._floor_bytes}"
            )

    def room(self) -> Room | None:
        """Return the free bytes now, and the floor."""
        try:
            return Room(self._free(), self._floor_bytes)
        except OSError:
            return None

    def is_low(self) -> bool:
        """Return True if the disk is below its floor. Asks the system each time: a window of results may be megabytes."""
        room = self.room()
        return room is not None and room.is_low

    def size_bytes(self) -> int | None:
        """Return the bytes of the file and of its log."""
        files = (self._path, self._path.with_name(self._path.name + "-wal"))
        try:
            return sum(file.stat().st_size for file in files if file.exists())
        except OSError:
            return None

    def _free(self) -> int:
        disk = os.statvfs(self._path.parent)
        return disk.f_bavail * disk.f_frsize

    def _look(self) -> None:
        now = time.monotonic()
        if now - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = now
        if _identity(self._path) != self._file:
            raise LedgerBroken(f"{self._path} was moved or replaced while in use")
        self._free_bytes = self._free()

    def _take_lock(self) -> None:
        side = self._path.with_name(self._path.name + "-lock")
        try:
            lock = os.open(side, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _refused(side, error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(lock, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock)
            raise SettingsError(
                KEY,
                f"process {holder} serves {self._path} already",
                hint="one server at a time on SQLite; stop that one first",
            ) from None
        self._lock = lock
        # On a full disk the lock holds without the id of the process that holds it.
        with contextlib.suppress(OSError):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


class NoFile(DatabaseFile):
    """A database that is no file of the operating system: there is nothing to lock or to watch."""

    def __init__(self) -> None:
        super().__init__("nowhere", floor_bytes=0)

    def take(self) -> None:
        pass

    def check_room(self) -> None:
        pass

    def room(self) -> Room | None:
        return None

    def size_bytes(self) -> int | None:
        return None


def mount_kind(folder: Path, mounts: Path = MOUNTS) -> str | None:
    """Return the kind of file system a folder lies on, by Linux's table; None if the system does not tell."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    where = folder.resolve()
    best, kind = -1, None
    for line in lines:
        left, _, right = line.partition(" - ")
        mounted = Path(left.split(" ")[4].replace("\\040", " "))
        if len(mounted.parts) >= best and where.is_relative_to(mounted):
            best, kind = len(mounted.parts), right.split(" ")[0]
    return kind


def _refused(path: Path, error: OSError) -> SurehookError:
    what = f"{path} cannot be opened: {error.strerror}"
    if error.errno == errno.ENOSPC:
        return LedgerFull(what)
    hint = f"surehook must be able to write in {path.parent}; --database-url names another place"
    return SettingsError(KEY, what, hint=hint)


def _refuse_another_file(path: Path) -> None:
    """Refuse a file that another program made, before a lock is created beside it. SQLite's files begin with `SQLITE`, or are
    empty."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        begins = file.read(len(SQLITE))
        if begins not in (b"", SQLITE):
            raise SettingsError(KEY, f"{path} is no SQLite database", hint="name a file of its own")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
