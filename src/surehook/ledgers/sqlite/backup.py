"""A consistent copy of the whole ledger, made by SQLite's online backup while work goes on.

The backup has a connection of its own and reads as of one instant. Writers go on, but the WAL cannot be reset meanwhile.
The copy is written under another name beside its destination, checked page by page and synced. Only then does it get its
name, so a file with that name is complete.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from surehook.core.errors import LedgerError, Problem
from surehook.ledgers.sqlite.driver import Driver
from surehook.ledgers.sqlite.session import SqliteSession


def back_up(driver: Driver, source_path: str, destination: str) -> None:
    """Copy the database. Raises Problem `backup_exists`, `backup_failed`."""
    target = Path(destination).absolute()
    if target.exists():
        raise Problem("backup_exists", f"{target} is there already", field="path", status=409)
    if not target.parent.is_dir():
        detail = f"there is no folder {target.parent}"
        raise Problem("backup_failed", detail, field="path", hint="make it first", status=503)
    partial = target.with_name(target.name + ".partial")
    try:
        _discard(partial)
        os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        _copy(driver, source_path, str(partial))
        _sync(partial)
        # A link fails, rather than replaces a file that somebody made meanwhile.
        os.link(partial, target)
        _sync(target.parent)
    except (OSError, LedgerError, driver.errors) as error:
        raise Problem("backup_failed", f"the copy could not be written: {error}", status=503) from error
    finally:
        _discard(partial)


def _copy(driver: Driver, source_path: str, partial: str) -> None:
    source, copy = SqliteSession(driver, source_path), SqliteSession(driver, partial)
    try:
        source.connect(("query_only = on",))
        copy.connect(())
        driver.copy(source.connection, copy.connection)
        # Otherwise the copy would inherit WAL mode, and a log file beside it.
        copy.rows("pragma journal_mode = delete")
        found = copy.value("pragma integrity_check")
        if found != "ok":
            raise Problem("backup_failed", f"the copy is damaged: {found}", status=503)
    finally:
        source.close()
        copy.close()


def _discard(partial: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with suppress(FileNotFoundError):
            os.unlink(f"{partial}{suffix}")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
