"""Engines from URLs, set up so that what was committed survives a loss of power."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from surehook.core.errors import SettingsError

# Database → driver that blocks, driver that does not. A URL that names a driver keeps it.
DRIVERS = {
    "sqlite": ("sqlite+pysqlite", "sqlite+aiosqlite"),
    "postgresql": ("postgresql+psycopg", "postgresql+asyncpg"),
    "postgres": ("postgresql+psycopg", "postgresql+asyncpg"),
    "mysql": ("mysql+pymysql", "mysql+asyncmy"),
    "mariadb": ("mariadb+pymysql", "mariadb+asyncmy"),
}
BUSY_MS = 10_000  # for another process's transaction on SQLite; within one process the inbox takes turns


def engine(url: str, *, durable: bool = True) -> Engine:
    """An engine for callers that block. Not `durable`: SQLite does not wait for the disk, as tests need not.

    Raises SettingsError for a URL that cannot be used.
    """
    chosen = _url(url, 0)
    made = create_engine(chosen, **_options(chosen))
    if made.dialect.name == "sqlite":
        event.listen(made, "connect", _durable if durable else _quick)
    return made


def async_engine(url: str, *, durable: bool = True) -> AsyncEngine:
    """An engine for callers that must not block. Raises SettingsError."""
    chosen = _url(url, 1)
    made = create_async_engine(chosen, **_options(chosen))
    if made.dialect.name == "sqlite":
        event.listen(made.sync_engine, "connect", _durable if durable else _quick)
    return made


def rows(connection: Connection, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    """One statement, with `:name` for values; its rows."""
    found = connection.execute(text(statement), values)
    return [tuple(row) for row in found] if found.returns_rows else []


def _url(url: str, kind: int) -> URL:
    try:
        parsed = make_url(url)
    except Exception:
        raise SettingsError(
            "url", "not a database URL", hint="postgresql://host/app, sqlite:///app.db"
        ) from None
    if "+" not in parsed.drivername:
        if parsed.drivername not in DRIVERS:
            raise SettingsError("url", f"no driver for {parsed.drivername}", hint=", ".join(DRIVERS))
        parsed = parsed.set(drivername=DRIVERS[parsed.drivername][kind])
    if parsed.get_backend_name() in ("mysql", "mariadb"):
        parsed = parsed.update_query_dict({"charset": "utf8mb4"})
    return parsed


def _options(url: URL) -> dict[str, Any]:
    """A connection that died while idle is found out before work is given to it."""
    return {} if url.get_backend_name() == "sqlite" else {"pool_pre_ping": True}


def _durable(connection: Any, record: Any) -> None:
    """WAL, so that readers and the writer do not wait for each other; FULL, so that a commit is on the disk."""
    _set(connection, "synchronous=FULL")


def _quick(connection: Any, record: Any) -> None:
    _set(connection, "synchronous=OFF")


def _set(connection: Any, synchronous: str) -> None:
    cursor = connection.cursor()
    for pragma in ("journal_mode=WAL", synchronous, f"busy_timeout={BUSY_MS}"):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()
