"""The checks of `surehook doctor` on this machine. None of them writes anything."""

from __future__ import annotations

import fcntl
import os
import platform
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from msgspec import Struct

from surehook.cli.errors import KEY_HINT
from surehook.client import Client, Refused, Unreachable
from surehook.config import Settings

PYTHON_MIN = (3, 11)
SQLITE_MIN = (3, 35, 0)  # RETURNING
CLOCK_SINCE = datetime(2025, 1, 1, tzinfo=UTC)  # an earlier time means that the clock was never set
LOCK_WAIT_S = 2.0  # a reader of a WAL ledger hardly ever waits
DISK_WARNING = 4  # times the floor
# Unfinished deliveries are counted up to this number, which takes a few milliseconds.
COUNTED_MAX = 100_000
_WAITING = "select count(*) from (select 1 from delivery limit ?)"


class Finding(Struct, frozen=True):
    """The result of one check. `state`: ok, warning (works, but not for long or not as meant) or wrong."""

    what: str
    state: Literal["ok", "warning", "wrong"]
    detail: str
    hint: str | None = None


def python() -> Finding:
    version = platform.python_version()
    if sys.version_info < PYTHON_MIN:
        return Finding("python", "wrong", version, "Python 3.11 or newer is needed")
    return Finding("python", "ok", version)


def sqlite() -> Finding:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < SQLITE_MIN:
        return Finding(
            "sqlite", "wrong", version, "SQLite 3.35 or newer is needed; a newer Python brings one"
        )
    return Finding("sqlite", "ok", version)


def clock() -> Finding:
    now = datetime.now(UTC)
    if now < CLOCK_SINCE:
        return Finding(
            "clock", "wrong", f"{now:%Y-%m-%d %H:%M:%S} UTC", "set the clock; signatures carry the time"
        )
    return Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M:%S} UTC")


def disk(settings: Settings) -> Finding:
    folder = settings.database_path.absolute().parent
    try:
        found = os.statvfs(folder)
    except OSError as error:
        return Finding(
            "disk", "wrong", f"{folder}: {error.strerror}", "make the folder, or correct database_url"
        )
    # SQLite makes files beside the ledger, and `serve` a lock, whatever the rights on the ledger itself.
    files = [
        settings.database_path.with_name(settings.database_path.name + end) for end in ("", "-wal", "-lock")
    ]
    for each in (folder, *(file for file in files if file.exists())):
        if not os.access(each, os.W_OK):
            detail = f"{each} is not writable by this user, so `surehook serve` would fail"
            return Finding("disk", "wrong", detail, "correct owner or rights")
    free_mb = found.f_bavail * found.f_frsize >> 20
    detail = f"{free_mb:,} MiB free in {folder}, floor {settings.disk_floor_mb:,}"
    if free_mb < settings.disk_floor_mb:
        return Finding("disk", "wrong", detail, "free some space: below the floor events are refused (503)")
    if free_mb < settings.disk_floor_mb * DISK_WARNING:
        return Finding("disk", "warning", detail, "free some space soon")
    return Finding("disk", "ok", detail)


def lock_holder(path: Path) -> str | None:
    """The pid of the process that serves this database now, or None."""
    side = path.with_name(path.name + "-lock")
    try:
        descriptor = os.open(side, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(descriptor, 20, 0).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(descriptor)
    return None


def database(settings: Settings, holder: str | None) -> Iterator[Finding]:
    path = settings.database_path
    if not path.exists():
        yield Finding("ledger", "ok", f"{path} does not exist yet; `surehook serve` makes it")
        return
    log = path.with_name(path.name + "-wal")
    size_mb = sum(file.stat().st_size for file in (path, log) if file.exists()) / (1 << 20)
    # Without a log there is no writer, and `immutable` makes no files of its own beside the ledger.
    mode = "mode=ro" if log.exists() else "immutable=1"
    try:
        where = f"file:{quote(str(path.absolute()))}?{mode}"
        with closing(sqlite3.connect(where, uri=True, timeout=LOCK_WAIT_S)) as connection:
            tables = connection.execute("select count(*) from sqlite_master").fetchone()[0]
            waiting = connection.execute(_WAITING, (COUNTED_MAX + 1,)).fetchone()[0] if tables else 0
    except sqlite3.Error as error:
        hint = "is it a surehook ledger? `surehook backup` copies and checks one"
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
            hint = "free some space on its disk"
        yield Finding("ledger", "wrong", f"{path} cannot be read: {error}", hint)
        return
    served = f"served by process {holder}" if holder else "not served now"
    waits = f"{waiting:,}" if waiting <= COUNTED_MAX else f"more than {COUNTED_MAX:,}"
    yield Finding("ledger", "ok", f"{path}, {size_mb:,.1f} MiB, {waits} unfinished deliveries, {served}")


def port(settings: Settings, holder: str | None, *, answers: bool = False) -> Finding:
    place = f"{settings.host} port {settings.port}"
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((settings.host, settings.port))
    except OSError as error:
        if answers:
            return Finding("port", "ok", f"{place} is in use by the surehook that answers there")
        if holder is not None:
            detail = f"{place} is in use: by process {holder}, which serves the ledger, or by another program"
            return Finding("port", "ok", detail, "`server` below says whether a surehook answers there")
        hint = "choose another with --port or SUREHOOK_PORT"
        return Finding("port", "wrong", f"{place}: {error.strerror}", hint)
    return Finding("port", "ok", f"{place} is free")


def server(settings: Settings) -> Iterator[Finding]:
    """Check that the server answers, is ready, and accepts our key."""
    with Client(settings.server_url, settings.api_key, timeout_s=5.0, patience_s=0) as client:
        try:
            said = client.call("GET", "/readyz")
        except Unreachable as error:
            yield Finding(
                "server",
                "wrong",
                str(error),
                "start it with `surehook serve`, or give --server; or --no-server",
            )
            return
        except Refused as error:
            yield Finding("server", "wrong", f"not ready: {error.detail}", error.hint)
            return
        yield Finding("server", "ok", f"{settings.server_url} is ready")
        if isinstance(said, dict) and said.get("warning"):
            yield Finding("lanes", "warning", str(said["warning"]))
        try:
            client.call("GET", "/v1/policies")  # a call that counts nothing
        except Refused as error:
            yield Finding("key", "wrong", error.detail, KEY_HINT)
            return
        except Unreachable as error:
            yield Finding("key", "wrong", str(error))
            return
        yield Finding("key", "ok", "accepted")
