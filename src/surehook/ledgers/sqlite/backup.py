"""A consistent copy of the whole book while work goes on, made by SQLite's online backup.

The copy has a connection of its own and reads as of one instant, so writers go on; the WAL cannot be
reset meanwhile. It is written beside its place, checked page by page, synced, and only then renamed: a
file with the asked-for name is whole.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from surehook.core.errors import LedgerError, Problem
from surehook.ledgers.sqlite.driver import Driver
from surehook.ledgers.sqlite.session import Session


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
        os.link(partial, target)  # fails, rather than replaces, where somebody was faster
        _sync(target.parent)
    except (OSError, LedgerError, driver.errors) as error:
        raise Problem("backup_failed", f"the copy could not be written: {error}", status=503) from error
    finally:
        _discard(partial)


def _copy(driver: Driver, source_path: str, partial: str) -> None:
    source, copy = Session(driver, source_path), Session(driver, partial)
    try:
        source.connect(("query_only = on",))
        copy.connect(())
        driver.copy(source.connection, copy.connection)
        # The copy is one file: what it would take over from its source is a log beside it.
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
