"""Engines from URLs, set up so that what was committed survives a loss of power."""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor, ExceptionContext
from sqlalchemy.exc import InvalidatePoolError, NoSuchModuleError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, Pool, QueuePool, SingletonThreadPool, StaticPool

from surehook.core.errors import SettingsError
from surehook.core.meant import meant
from surehook.host.clock import SystemClock
from surehook.host.forking import renew_in_children
from surehook.inbox.safe_log import log
from surehook.inbox.sql import cutting, forgetting, pooler
from surehook.inbox.sql.contention import NO_STATEMENT, state_of
from surehook.inbox.sql.driver_connections import POOLED, GivenConnection
from surehook.inbox.sql.transaction_deadlines import Silent, bounded

# Database → driver that blocks, driver that does not. A URL that names a driver keeps it.
DRIVERS = {
    "sqlite": ("sqlite+pysqlite", "sqlite+aiosqlite"),
    "postgresql": ("postgresql+psycopg", "postgresql+asyncpg"),
    "postgres": ("postgresql+psycopg", "postgresql+asyncpg"),
    "mysql": ("mysql+pymysql", "mysql+asyncmy"),
    "mariadb": ("mariadb+pymysql", "mariadb+asyncmy"),
}
EXAMPLES = "postgresql://user@host/app or sqlite:///app.db"
# Of modules that are packages of another name, or are better taken otherwise.
PACKAGES = {"psycopg": "psycopg[binary]", "pymysql": "PyMySQL", "MySQLdb": "mysqlclient"}
ASKED_S = 1.0  # idle; a connection that was used later is given out unasked: asking costs a round trip
_USED = "surehook_inbox_used"  # in a connection's `info`: when it was given back, by the boot-time clock
# Options of libpq that people put into URLs, and that would reach asyncpg as unknown arguments.
_LIBPQ = frozenset(
    [
        "application_name",
        "connect_timeout",
        "keepalives",
        "keepalives_idle",
        "options",
        "sslcert",
        "sslkey",
        "sslrootcert",
    ]
)
CHECKPOINT_PAGES = 4_000  # 16 MB of SQLite's log: hot pages are moved once for many changes
CONNECTIONS = 80  # at most, opened as they are needed: 64 workers, who stores, who looks
KEPT = 16  # of them, when they are needed no more: opening one costs as much as some events
CONNECT_S = 10.0  # for a connection to be made
ASK_S = 3.0  # for the answer of a connection that is asked whether it lives
SILENT_S = 20  # in which the other end's machine confirms nothing: the connection is lost then
BUSY_MS = 10_000  # for another transaction on SQLite; within one process the inbox takes turns, and waits as long for its own


def engine(
    url: URL | str, *, durable: bool = True, asked_s: float = ASKED_S, read_s: float | None = None
) -> Engine:
    """An engine for callers that block. Not `durable`: SQLite does not wait for the disk, as tests need not. A connection that
    idled for more than `asked_s` seconds is asked whether it lives before it is given out. For one answer it is waited `read_s`
    seconds, where the driver has no other bound for a server that takes a connection and says nothing.

    Raises SettingsError for a URL that cannot be used.
    """
    place = _checked(_url(url, 0), is_async=False)
    made = create_engine(place, **_pool(place), connect_args=_patience(place, read_s))
    _set_up(made, durable, asked_s)
    return made


def async_engine(url: URL | str, *, durable: bool = True, asked_s: float = ASKED_S) -> AsyncEngine:
    """Make an engine for callers that must not block. Raises SettingsError."""
    place = _for_driver(_checked(_url(url, 1), is_async=True))
    made = create_async_engine(place, **_pool(place), connect_args=_patience(place, None))
    _set_up(made.sync_engine, durable, asked_s)
    return made


def rows(connection: Connection, statement: str, values: dict[str, object]) -> list[tuple[object, ...]]:
    """Run one statement, with `:name` for values; its rows."""
    found = connection.execute(text(statement), values)
    return [tuple(row) for row in found] if found.returns_rows else []


def no_engine(given: object) -> SettingsError:
    """Make the error for something that is neither an engine nor a URL."""
    return SettingsError(
        "engine",
        f"a {type(given).__name__} is neither an engine nor a URL",
        hint=f"such as {EXAMPLES}; is the setting empty?",
    )


def is_shared(engine: Engine, *, is_async: bool) -> bool:
    """Tell whether threads, or tasks, share one connection, so that a transaction must be over before another one begins.

    Raises SettingsError where nobody can see to that, and for an engine that keeps each statement by itself.
    """
    dialect: Any = engine.dialect
    levels = (dialect._on_connect_isolation_level, engine.get_execution_options().get("isolation_level"))
    if "AUTOCOMMIT" in levels:
        raise SettingsError(
            "engine", "its isolation level is AUTOCOMMIT: an event, what handlers write and the mark that it is processed "
            "would not be kept together", hint="an engine of its own for the inbox, or create_engine(…) without isolation_level",
        )  # fmt: skip
    pool = engine.pool
    if not isinstance(pool, StaticPool) and not (is_async and isinstance(pool, SingletonThreadPool)):
        return False
    if dialect.name != "sqlite":
        raise SettingsError(
            "engine", f"its {type(pool).__name__} gives one connection to all at once, and transactions would be mixed up",
            hint="create_engine(…) without poolclass",
        )  # fmt: skip
    return True


def _url(url: URL | str, kind: int) -> URL:
    try:
        parsed = make_url(url)
    except Exception:
        if isinstance(url, str) and url.partition("?")[0].count("@") > 1:
            raise _unescaped() from None
        # Not shown: it may hold a password.
        raise SettingsError("url", "this is not a database URL", hint=f"such as {EXAMPLES}") from None
    if _is_cut_short(parsed):
        raise _unescaped()
    database = parsed.get_backend_name()
    if database not in DRIVERS:
        raise SettingsError(
            "url", f"there is no database {database!r}", hint=meant(database, DRIVERS, "databases")
        )
    if "+" not in parsed.drivername:
        parsed = parsed.set(drivername=DRIVERS[parsed.drivername][kind])
    if parsed.get_backend_name() in ("mysql", "mariadb"):
        parsed = parsed.update_query_dict({"charset": "utf8mb4"})
    return parsed


def _is_cut_short(url: URL) -> bool:
    """Tell whether its password seems to end at an @ of its own: what follows stands in the host then, and in the database."""
    inside = url.get_backend_name() != "sqlite" and re.search("@.*/", url.database or "") is not None
    return "@" in (url.host or "") or (url.password is not None and inside)


def _unescaped() -> SettingsError:
    """Make the error for a password that is not escaped. Nothing of the URL is shown: the host may be a part of it."""
    return SettingsError(
        "url",
        "there is more than one @: an @ in a user or password has to be written %40",
        hint="urllib.parse.quote(password, safe='') writes it so",
    )


def suffices(pool: Pool, workers: int) -> None:
    """Warn of a pool that workers would use up: requests would wait for a connection, and then be refused. No error: an
    application may have bounded them on purpose, and nothing is lost."""
    if not isinstance(pool, QueuePool) or pool._max_overflow < 0 or not pool.size():  # without a bound
        return
    most = pool.size() + pool._max_overflow
    if most <= workers:
        log.warning(
            "%d workers on a pool of %d connections: they wait for each other, and what arrives may be refused; "
            "create_engine(…, pool_size=%d), or start fewer", workers, most, workers + 1,
        )  # fmt: skip


def _pool(url: URL) -> dict[str, object]:
    """Arguments of the pool. SQLite has one writer, so its pool keeps its default size, and the connection used last is given out
    first: each connection caches pages, and a commit by one makes the caches of all others stale. Turn by turn (the
    default), six pages were read from the file for each message that was stored, and two for each that was processed."""
    if url.get_backend_name() == "sqlite":
        # A database in memory has one connection: another one would be another database. Older drivers of asyncio have no queue.
        dialect: Any = url.get_dialect()  # its public type lacks `get_pool_class`, which every dialect has
        if _is_in_memory(url):
            return {"poolclass": StaticPool}
        return {"pool_use_lifo": True} if issubclass(dialect.get_pool_class(url), QueuePool) else {}
    return {"pool_size": KEPT, "max_overflow": CONNECTIONS - KEPT}


def _is_in_memory(url: URL) -> bool:
    return url.database in (None, "", ":memory:")


def missing_file(store: object) -> Path | None:
    """Return the path of a store's file of SQLite that does not exist; where it cannot be told, None."""
    url = getattr(getattr(store, "engine", None), "url", None)
    if not isinstance(url, URL) or url.get_backend_name() != "sqlite" or _is_in_memory(url):
        return None
    name = str(url.database)
    path = Path(name).resolve()
    return None if name.startswith("file:") or path.exists() else path


def _patience(url: URL, read_s: float | None) -> dict[str, object]:
    """Arguments of the driver: how long it waits for a connection; what the URL says stands."""
    told: dict[str, object]
    match url.get_driver_name():
        case "psycopg":
            told = {"connect_timeout": round(CONNECT_S)}
        case "asyncpg":
            told = {"timeout": CONNECT_S, **pooler.asyncpg_arguments()}
        case "pymysql":  # its timeout for connecting ends before the server's first word
            told = {"read_timeout": read_s}
        case "pysqlite" if _is_in_memory(url):
            told = {"check_same_thread": False}
        case _:  # asyncmy is bounded by its task's deadline
            told = {}
    return {name: value for name, value in told.items() if name not in url.query}


def _checked(url: URL, *, is_async: bool) -> URL:
    """Check that its driver is installed, and of the kind that is wanted. Raises SettingsError."""
    right = DRIVERS[url.get_backend_name()][is_async]
    try:
        dialect = url.get_dialect()
    except NoSuchModuleError:
        raise SettingsError("url", f"there is no driver {url.drivername!r}", hint=f"{right}://…") from None
    if dialect.is_async != is_async:
        inbox, kind = ("AsyncInbox", "does not block") if is_async else ("Inbox", "blocks")
        raise SettingsError(
            "url", f"the driver of {url.drivername} is none for {inbox}, which needs one that {kind}",
            hint=f"{right}://…, or without a driver: {url.get_backend_name()}://…",
        )  # fmt: skip
    try:
        dialect.import_dbapi()
    except ModuleNotFoundError as error:
        raise SettingsError(
            "url",
            f"{url.drivername} needs the package {error.name}, which is missing",
            hint=_install(error.name),
        ) from error
    return url


def _for_driver(url: URL) -> URL:
    """Translate what libpq calls otherwise than asyncpg does. Raises SettingsError for what asyncpg has no argument for."""
    if url.get_driver_name() != "asyncpg":
        return url
    if theirs := sorted(_LIBPQ.intersection(url.query)):
        raise SettingsError(
            "url", f"{theirs[0]} is an option of libpq, and asyncpg has none of that name",
            hint="leave it out, or hand in create_async_engine(…, connect_args={…})",
        )  # fmt: skip
    if (mode := url.query.get("sslmode")) is None:
        return url
    return url.difference_update_query(["sslmode"]).update_query_dict({"ssl": str(mode)})


def _install(module: str | None) -> str:
    return f"pip install '{PACKAGES.get(module or '', module)}'"


def _set_up(engine: Engine, durable: bool, asked_s: float) -> None:
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _durable if durable else _quick)
    else:
        event.listen(engine, "connect", _watched)
        _ask_after_idling(engine, asked_s)
    if engine.dialect.name == "postgresql":
        event.listen(engine, "connect", partial(_unprepared, engine.dialect.is_async))
        event.listen(engine, "checkin", forgetting.after_commit)
        event.listen(engine, "handle_error", _without_statements)
    if not isinstance(engine.pool, StaticPool):  # a child has a copy of a database in memory
        _begun_anew_in_children(engine)


class _OfParent:
    """An engine, whose connections are not a child process's to use or to close."""

    def __init__(self, engine: Engine) -> None:
        self._engine = weakref.ref(engine)

    def forked(self) -> None:
        if (engine := self._engine()) is not None:
            engine.dispose(close=False)


def _begun_anew_in_children(engine: Engine) -> None:
    of_parent = _OfParent(engine)
    renew_in_children(of_parent)
    weakref.finalize(engine, lambda _: None, of_parent)  # it lives as long as the engine


def _watched(driver: object, record: Any) -> None:
    """Have the operating system look after a connection over which nothing comes: a host that is gone says nothing."""
    cutting.watched(driver.driver_connection if hasattr(driver, "driver_connection") else driver, SILENT_S)


def _unprepared(is_async: bool, driver: DBAPIConnection, record: ConnectionPoolEntry) -> None:
    """Prepare nothing by a name behind a pooler; it is asked for once, as a connection is made."""
    own = getattr(driver, "driver_connection", driver)
    with bounded(ASK_S, lambda: cutting.cut(own), is_async=is_async):
        if pooler.unprepared(driver):
            record.info[POOLED] = True


def _ask_after_idling(engine: Engine, asked_s: float) -> None:
    """A connection that died while idle is found out before work is given to it. (`pool_pre_ping` asks busy ones as well.)"""
    boot = SystemClock().boot

    def given_back(connection: DBAPIConnection, record: Any) -> None:
        record.info[_USED] = boot()

    def given_out(connection: DBAPIConnection, record: Any, handed: object) -> None:
        used = record.info.get(_USED)
        if used is not None and boot() - used > asked_s and not _lives(engine, connection):
            raise InvalidatePoolError  # its neighbours have died with it; the pool makes another

    event.listen(engine, "checkin", given_back)
    event.listen(engine, "checkout", given_out)


def _lives(engine: Engine, connection: DBAPIConnection) -> bool:
    try:
        own = getattr(connection, "driver_connection", connection)
        with bounded(ASK_S, lambda: cutting.cut(own), is_async=engine.dialect.is_async):
            return engine.dialect.do_ping(connection)
    except Silent:
        return False
    except engine.dialect.loaded_dbapi.Error as error:
        if engine.dialect.is_disconnect(error, connection, None):
            return False
        raise


def _without_statements(context: ExceptionContext) -> None:
    """Give up a connection whose prepared statements somebody has taken away, a pooler between: it would fail each time. Not in
    a handler's transaction, of which the attempt fails and counts."""
    if state_of(context.original_exception) == NO_STATEMENT and not isinstance(
        context.connection, GivenConnection
    ):
        context.is_disconnect, context.invalidate_pool_on_disconnect = True, False


def _durable(connection: Any, record: Any) -> None:
    """WAL, so that readers and the writer do not wait for each other; FULL, so that a commit is on the disk."""
    _set(connection, "synchronous=FULL")


def _quick(connection: DBAPIConnection, record: Any) -> None:
    _set(connection, "synchronous=OFF")


def _set(connection: DBAPIConnection, synchronous: str) -> None:
    cursor = connection.cursor()
    _write_ahead(cursor, SystemClock().boot)
    cursor.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    cursor.execute(f"PRAGMA {synchronous}")
    cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
    cursor.close()


def _write_ahead(cursor: DBAPICursor, boot: Callable[[], float]) -> None:
    """SQLite does not wait when a new file is given its log while another process does the same: it fails at once. To begin
    a transaction does wait, for the one that is in the way. All of it takes `BUSY_MS` at most."""
    until, left_ms = boot() + BUSY_MS / 1000, BUSY_MS
    while True:
        cursor.execute(f"PRAGMA busy_timeout={left_ms}")
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            left_ms = round((until - boot()) * 1000)
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or left_ms <= 0:
                raise
        cursor.execute(f"PRAGMA busy_timeout={left_ms}")
        cursor.execute("BEGIN EXCLUSIVE")
        cursor.execute("ROLLBACK")
        left_ms = max(round((until - boot()) * 1000), 1)
