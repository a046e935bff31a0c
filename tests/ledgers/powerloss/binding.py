"""The disk under SQLite: an apsw file system over it, and the ledger's driver over that.

apsw's files written in Python have no shared memory, so the book is opened with `locking_mode=exclusive`
(the index of the log then lives in SQLite's own memory) and with the one connection of an inline ledger.
Everything else is SQLite as shipped: log, checkpoints, recovery.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from typing import Any

import apsw

from surehook.ledgers.sqlite.driver import Driver

from .disk import Disk, DiskFull, InputOutputError, PowerLost

_SYNC_THEIR_DIRECTORY = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
_numbers = count()


class DiskFiles(apsw.VFS):
    """A file system with one disk. Registered for as long as it is referenced."""

    def __init__(self, disk: Disk) -> None:
        self._disk: Disk | None = disk
        self.name = f"disk{next(_numbers)}"
        super().__init__(self.name, "", maxpathname=64)

    @property
    def disk(self) -> Disk:
        if self._disk is None:
            raise PowerLost  # the process is gone; its disk does not hear of it
        return self._disk

    def detach(self) -> None:
        self._disk = None

    def xOpen(self, name: Any, flags: list[int]) -> DiskFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name or f"temporary{next(_numbers)}"
        with _Translated(apsw.CantOpenError):
            if not self.disk.exists(path):
                self.disk.create(path, names=bool(flags[0] & _SYNC_THEIR_DIRECTORY))
        flags[1] = flags[0]
        return DiskFile(self, path)

    def xDelete(self, name: str, sync_directory: bool) -> None:
        with _Translated(apsw.IOError):
            if self.disk.exists(name):
                self.disk.delete(name, sync_directory=sync_directory)

    def xAccess(self, name: str, flags: int) -> bool:
        with _Translated(apsw.IOError):
            return self.disk.exists(name)

    def xFullPathname(self, name: str) -> str:
        return name

    def xRandomness(self, size: int) -> bytes:
        return bytes(size)  # salts of the log then follow from its history alone

    def xSleep(self, microseconds: int) -> int:
        return microseconds

    def xCurrentTime(self) -> float:
        return 2_461_041.5  # 2026-01-01, in Julian days


class DiskFile:
    def __init__(self, files: DiskFiles, name: str) -> None:
        self._files, self._name = files, name

    def xRead(self, size: int, offset: int) -> bytes:
        with _Translated(apsw.IOError):
            return self._files.disk.read(self._name, offset, size)

    def xWrite(self, data: bytes, offset: int) -> None:
        with _Translated(apsw.IOError):
            self._files.disk.write(self._name, offset, data)

    def xTruncate(self, size: int) -> None:
        with _Translated(apsw.IOError):
            self._files.disk.truncate(self._name, size)

    def xSync(self, flags: int) -> None:
        with _Translated(apsw.IOError):
            self._files.disk.sync(self._name)

    def xFileSize(self) -> int:
        with _Translated(apsw.IOError):
            return self._files.disk.size(self._name)

    def xClose(self) -> None:
        pass

    def xLock(self, level: int) -> None:
        pass

    def xUnlock(self, level: int) -> None:
        pass

    def xCheckReservedLock(self) -> bool:
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xSectorSize(self) -> int:
        return 512

    def xDeviceCharacteristics(self) -> int:
        # As SQLite's own file systems answer: bytes beside a write are not harmed, and nothing else is sure.
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def excepthook(self, kind: Any, value: Any, trace: Any) -> None:
        """Errors raised here are meant; SQLite hears of them as result codes."""


class _Translated:
    """The disk's errors as SQLite's."""

    def __init__(self, fallback: type[apsw.Error]) -> None:
        self._fallback = fallback

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, DiskFull):
            raise _with_code(apsw.FullError("the disk is full"), apsw.SQLITE_FULL)
        if isinstance(error, (PowerLost, InputOutputError)):
            code = apsw.SQLITE_CANTOPEN if self._fallback is apsw.CantOpenError else apsw.SQLITE_IOERR
            raise _with_code(self._fallback(type(error).__name__), code)


def _with_code(error: apsw.Error, code: int) -> apsw.Error:
    error.result = error.extendedresult = code
    return error


class DiskDriver(Driver):
    """The ledger's driver for a book on one disk.

    checkpoint_pages    how long the log may grow; small, so that a short life sees many checkpoints
    synchronous         the negative control: whatever the ledger asks for, this is what it gets
    """

    errors = apsw.Error
    on_disk = False

    def __init__(self, disk: Disk, *, checkpoint_pages: int, synchronous: str | None = None) -> None:
        self._files = DiskFiles(disk)
        self._checkpoint_pages = checkpoint_pages
        self._synchronous = synchronous
        self._connection: apsw.Connection | None = None

    def connect(self, path: str) -> Any:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._connection = apsw.Connection(path, flags=flags, vfs=self._files.name)
        self._connection.execute("pragma locking_mode = exclusive")
        self._connection.set_wal_hook(self._checkpoint)
        return Changed(self, self._connection)

    def _checkpoint(self, connection: apsw.Connection, name: str, pages: int) -> int:
        """What SQLite does by itself after a commit that left the log long: try, and say nothing if it fails.

        By hand, because apsw raises from the commit what a file system raised inside SQLite's own attempt,
        which SQLite has already forgiven.
        """
        if pages >= self._checkpoint_pages:
            with suppress(apsw.Error):
                connection.wal_checkpoint(name, apsw.SQLITE_CHECKPOINT_PASSIVE)
        return apsw.SQLITE_OK

    def changes(self, connection: Any, cursor: Any) -> int:
        return int(connection.real.changes())

    def code(self, error: Exception) -> int | None:
        code = getattr(error, "extendedresult", None)
        return code if isinstance(code, int) else None

    def integrity(self) -> str:
        """`ok`, or what SQLite finds wrong with the whole file."""
        assert self._connection is not None
        return str(self._connection.execute("pragma integrity_check").fetchall()[0][0])

    def end(self) -> None:
        """The process is gone: free what it had in memory, without a word to the disk."""
        self._files.detach()
        if self._connection is not None:
            with suppress(apsw.Error):
                self._connection.close(True)
            self._connection = None
        self._files.unregister()

    def changed(self, sql: str) -> str:
        """The statement as it is run on this disk."""
        if not sql.startswith("pragma"):
            return sql
        if "wal_autocheckpoint" in sql:
            return "select 1"  # `_checkpoint` is there instead, with fewer pages
        if self._synchronous is not None and "synchronous" in sql:
            # The ledger reads back what it asked for; this control lies to it.
            return f"pragma synchronous = {self._synchronous}" if "=" in sql else "select 2"
        return sql


class Changed:
    """The ledger's connection, with the driver's changes to its statements."""

    def __init__(self, driver: DiskDriver, real: apsw.Connection) -> None:
        self._driver, self.real = driver, real

    @property
    def in_transaction(self) -> bool:
        return self.real.in_transaction

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        return self.real.execute(self._driver.changed(sql), parameters)

    def close(self) -> None:
        """Left open: a process that dies does not close, and closing would write."""
