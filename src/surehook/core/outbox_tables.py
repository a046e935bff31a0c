"""The tables of an outbox, as SQL of each database. They live beside the application's own, or in a ledger.

    surehook_outbox            rows that wait for their publication; an application needs INSERT on this one alone
    surehook_outbox_refused    rows that no server takes, each with the reason, until somebody publishes or deletes them
    surehook_outbox_sequence   last sequence number of each subject whose events are numbered

On PostgreSQL a trigger wakes the reader. A notification locks the whole cluster while its transaction commits, so one is sent
only where the reader sleeps: it holds an advisory lock then, which each inserting statement tries to share. The reader gets
that lock only while no transaction with new rows is open; so whatever it does not see before it sleeps wakes it.
"""

from __future__ import annotations

import re
from typing import Literal

from surehook.core.errors import Problem
from surehook.core.limits import EVENT_BODY_BYTES
from surehook.core.outbox import READ

Dialect = Literal["postgresql", "mysql", "sqlite"]
DIALECTS: tuple[Dialect, ...] = ("postgresql", "mysql", "sqlite")
TABLE = "surehook_outbox"
# Channel and payload of the notification on PostgreSQL. Servers listen on this channel (wakeups/postgres.py).
CHANNEL, HINT = "surehook", "outbox"
# Of payload and fields of a row that is read at all: more is no event.
ROW_CHARS = EVENT_BODY_BYTES
# First halves of the keys of advisory locks, "sho" and a number; the second is the table's oid.
READS, SLEEPS = 0x73686F01, 0x73686F02

# Without capitals, which databases fold in different ways.
_NAME = re.compile(r"([a-z_][a-z0-9_]{0,40}\.)?[a-z_][a-z0-9_]{0,40}")
_POSITION = {
    "postgresql": "bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "mysql": "bigint NOT NULL AUTO_INCREMENT PRIMARY KEY",
    "sqlite": "integer PRIMARY KEY AUTOINCREMENT",
}
# Bounds are those of events (core/limits.py), in characters.
_SHORT = {"postgresql": "varchar(256)", "mysql": "varchar(256)", "sqlite": "text"}
_LONG = {"postgresql": "text", "mysql": "mediumtext", "sqlite": "text"}
_END = {"postgresql": "", "mysql": " DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "sqlite": ""}


def is_table(name: str) -> bool:
    """True if it is the name of a table, which may have a schema before it."""
    return _NAME.fullmatch(name) is not None


def check_table(name: str) -> str:
    """The name itself. Raises Problem `bad_table`."""
    if not is_table(name):
        raise Problem(
            "bad_table", f"{name!r} is not a table's name", field="table", hint="such as app.surehook_outbox"
        )
    return name


def create(dialect: Dialect, table: str = TABLE) -> list[str]:
    """Statements that make the tables."""
    check_table(table)
    short, long, end = _SHORT[dialect], _LONG[dialect], _END[dialect]
    # Texts of MySQL are equal to those with spaces behind them, and would share their numbers.
    exact = "varbinary(1024)" if dialect == "mysql" else short
    columns = (
        f"id {short} NOT NULL, aggregatetype {short} NOT NULL, aggregateid {short} NOT NULL, type {short} NOT NULL, "
        f"payload {long} NOT NULL, tenant {short} NOT NULL, subject {short}, sequence bigint, fields {long}, "
        "created_at bigint NOT NULL"
    )
    statements = [
        f"CREATE TABLE {table} (position {_POSITION[dialect]}, {columns}){end}",
        f"CREATE TABLE {table}_refused (number {_POSITION[dialect]}, position bigint NOT NULL, {columns}, "
        f"code {short} NOT NULL, reason {long} NOT NULL, refused_at bigint NOT NULL){end}",
        f"CREATE TABLE {table}_sequence (tenant {exact} NOT NULL, subject {exact} NOT NULL, last bigint NOT NULL, "
        f"PRIMARY KEY (tenant, subject)){end}",
    ]
    if dialect == "postgresql":
        statements += _waking(table)
    return statements


def next_rows(table: str, where: str, *, most: str, size: str) -> str:
    """The query for the next rows, in SQL of every database: at most `most`, up to the one with which their texts reach `size`
    characters. Of a row beyond what any event may have, payload and fields are null."""
    texts = "length(payload) + coalesce(length(fields), 0)"
    kept = [
        f"case when own <= {ROW_CHARS} then {name} end as {name}" if name in ("payload", "fields") else name
        for name in READ
    ]
    return (
        f"select {', '.join(kept)} from (select {', '.join(READ)}, own, sum(own) over (order by position) - own as before_it "
        f"from (select {', '.join(READ)}, {texts} as own from {table} where {where} order by position limit {most}) as next) "
        f"as sized where before_it < {size} order by position"
    )


def counting(table: str) -> str:
    """The query for the fields of an `OutboxCount`, in SQL of every database."""
    return (
        f"select (select count(*) from {table}), (select count(*) from {table}_refused), "
        f"(select created_at from {table} order by position limit 1)"
    )


def drop(dialect: Dialect, table: str = TABLE) -> list[str]:
    """Statements that remove the tables with everything in them."""
    check_table(table)
    statements = [f"DROP TABLE {table}{end}" for end in ("_sequence", "_refused", "")]
    return [*statements, f"DROP FUNCTION {table}_wake()"] if dialect == "postgresql" else statements


def _waking(table: str) -> list[str]:
    function = f"{table}_wake"
    return [
        # Every row of a queue is new, and gone soon: its table is vacuumed by what dies, however small it is.
        f"ALTER TABLE {table} SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)",
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        f"IF NOT pg_try_advisory_xact_lock_shared(({SLEEPS}::bigint << 32) + TG_RELID::bigint) THEN "
        f"PERFORM pg_notify('{CHANNEL}', '{HINT}'); END IF; RETURN NULL; END $$",
        f"CREATE TRIGGER {table.rpartition('.')[2]}_wake AFTER INSERT ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {function}()",
    ]
