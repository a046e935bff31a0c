"""Checks of the server at the start: reachable, suitable for a ledger, and no transaction pooler in between.

If it cannot serve, a SettingsError says what to change; if a guarantee is weakened, a warning does. The texts name hosts,
roles and databases, never a password: they are made from the URL's parts and from the server's own words, and the server
never sees the URL.

A pooler that lends its connections per transaction (PgBouncer's `pool_mode = transaction`) takes away what the ledger needs:
settings of a session (durability, time limits, plans), prepared statements, locks that outlive a transaction, notifications.
Without them most of the speed and some of the safety would be lost, so such a pooler is refused. There are two signs of it:
the backend's process id is not the one that the connection was given, and two clients meet the same backend.
"""

from __future__ import annotations

import socket
from urllib.parse import unquote, urlsplit

import asyncpg

from surehook.core.errors import LedgerUnavailable, SettingsError
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.postgres.statements import query

KEY = "database_url"
OLDEST = 14_00_00
# Other clients of a busy pooler may take the backend in between, but hardly five times.
POOLER_LOOKS = 5
POOLED_HINT = (
    "set pool_mode = session for this database in pgbouncer.ini ([databases] NAME = … pool_mode=session), "
    "or connect to PostgreSQL itself; surehook keeps a dozen connections a process"
)
# Errors of a statement that was prepared on, or belongs to, another client's connection.
_MIXED_UP = frozenset(("26000", "42P05", "08P01"))


async def reach(session: PostgresSession, url: str) -> None:
    """Connect. Raises SettingsError with the cause."""
    try:
        await session.connected()
        return
    except LedgerUnavailable as error:
        cause, said = error.__cause__, str(error)
    except ValueError as error:
        cause, said = error, ""
    detail, hint = _in_the_way(cause, said, url)
    # Without the cause, which may quote the URL.
    raise SettingsError(KEY, detail, hint=hint)


def _in_the_way(cause: BaseException | None, said: str, url: str) -> tuple[str, str]:
    unreadable = (
        "the URL cannot be read",
        "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, special characters as %XX",
    )
    if isinstance(cause, (asyncpg.ClientConfigurationError, ValueError)):
        return unreadable
    try:
        parts = urlsplit(url)
        where, host = parts.netloc.rpartition("@")[2] or "the local server", parts.hostname or "localhost"
        database, role = unquote(parts.path.lstrip("/")), unquote(parts.username or "")
    except ValueError:
        return unreadable
    for kind, detail, hint in (
        (asyncpg.InvalidPasswordError, f"PostgreSQL at {where} does not take the password of {role!r}",
         "correct the password in the URL"),
        (asyncpg.InvalidAuthorizationSpecificationError, f"PostgreSQL at {where} refuses: {cause}",
         "look at pg_hba.conf, and whether the role exists"),
        (asyncpg.InvalidCatalogNameError, f"PostgreSQL at {where} has no database {database!r}",
         f"make it: createdb {database or 'NAME'}"),
        (asyncpg.TooManyConnectionsError, f"PostgreSQL at {where} has no connection left",
         "raise max_connections, or start fewer processes"),
        (asyncpg.CannotConnectNowError, f"PostgreSQL at {where} is starting or stopping", "try again in a moment"),
        (asyncpg.InsufficientPrivilegeError, f"the role {role!r} may not connect: {cause}",
         "grant connect on the database to it"),
        (socket.gaierror, f"the host {host!r} is not known", "correct the host in the URL, or the name service"),
        (ConnectionRefusedError, f"nobody listens at {where}", "start PostgreSQL, or correct host and port"),
        (TimeoutError, f"{where} does not answer", "look for a firewall in between, or correct the host"),
    ):  # fmt: skip
        if isinstance(cause, kind):
            return detail, hint
    return f"{where} cannot be used: {said}", "look whether it is a PostgreSQL server, and into its log"


async def check_pooler(session: PostgresSession, other: PostgresSession) -> None:
    """Raise SettingsError if a pooler lends its connections per transaction."""
    try:
        shared = await _is_shared(session, other)
    except LedgerUnavailable as error:
        if getattr(error.__cause__, "sqlstate", None) not in _MIXED_UP:
            raise
        shared = True
    if shared:
        detail = "a pooler in transaction mode (like PgBouncer's) stands between here and PostgreSQL"
        raise SettingsError(KEY, detail, hint=POOLED_HINT)


async def _is_shared(session: PostgresSession, other: PostgresSession) -> bool:
    connection = await session.connected()
    mine = await session.value(query("backend"))
    if connection.get_server_pid() == mine:
        # There is no pooler.
        return False
    try:
        for _ in range(POOLER_LOOKS):
            async with other.snapshot():
                theirs = await other.value(query("backend"))
                if theirs == mine or await session.value(query("backend")) != mine:
                    return True
    except LedgerUnavailable:
        # It does not even lend for a whole transaction.
        return True
    return False


async def check_server(session: PostgresSession) -> list[str]:
    """Check the server, and return warnings. Raises SettingsError if it cannot hold a ledger."""
    found = await session.row(query("server"))
    assert found is not None
    if found["version"] < OLDEST:
        raise SettingsError(KEY, f"PostgreSQL {found['version'] // 10_000} is too old", hint="14 or newer")
    if found["encoding"] != "UTF8":
        raise SettingsError(
            KEY, f"the database's encoding is {found['encoding']}", hint="make it with encoding UTF8"
        )
    if found["standby"]:
        raise SettingsError(
            KEY,
            "the server is a standby and takes no writes",
            hint="name the primary, or several hosts and ?target_session_attrs=read-write",
        )
    if found["read_only"] == "on":
        raise SettingsError(
            KEY, "the server is set to read-only", hint="default_transaction_read_only = off, for this role"
        )
    await _check_rights(session, found["role"])
    return _warnings(found)


async def _check_rights(session: PostgresSession, role: str) -> None:
    """Check the role's rights: it creates tables at the start and each day, and must own those it partitions."""
    rights = await session.row(query("rights"))
    assert rights is not None
    schema = rights["schema"]
    if schema is None:
        raise SettingsError(
            KEY,
            f"the role {role!r} has no schema to work in",
            hint=f'create schema "{role}" authorization "{role}"',
        )
    if not rights["may_create"]:
        raise SettingsError(
            KEY,
            f"the role {role!r} may not make tables in the schema {schema!r}",
            hint=f'grant create, usage on schema "{schema}" to "{role}"'
            + (f", and {_owner_hint(rights['foreign'], role)}" if rights["foreign"] else ""),
        )
    if rights["foreign"]:
        raise SettingsError(
            KEY,
            f"the table {rights['foreign']!r} belongs to another role, so {role!r} can neither migrate it nor make its days",
            hint=_owner_hint(rights["foreign"], role),
        )


def _owner_hint(table: str, role: str) -> str:
    return f'alter table "{table}" owner to "{role}", and so for all tables of the ledger'


def _warnings(found: asyncpg.Record) -> list[str]:
    warnings = []
    if found["fsync"] != "on":
        warnings.append(
            "fsync is off: what was answered 202 can be lost, and the whole database damaged, when the power goes"
        )
    if found["full_page_writes"] != "on":
        warnings.append("full_page_writes is off: the database can be damaged when the power goes")
    if found["synchronous_commit"] in ("off", "local"):
        warnings.append(
            f"synchronous_commit is {found['synchronous_commit']} here; surehook's own connections set it on"
        )
    return warnings
