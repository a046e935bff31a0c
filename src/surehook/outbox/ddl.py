"""The tables of an outbox in your own migrations. With Alembic:

    from alembic import op
    from surehook.outbox import ddl

    def upgrade():
        ddl.upgrade(op.get_bind())

    def downgrade():
        ddl.downgrade(op.get_bind())

and in `env.py`, so that autogenerate leaves them alone, `context.configure(…, include_name=ddl.include_name)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

from surehook.core.outbox_tables import DIALECTS, TABLE, Dialect, create, drop

__all__ = ["downgrade", "include_name", "include_names", "statements", "upgrade"]


IncludeName: TypeAlias = Callable[[str | None, str, Mapping[str, object]], bool]
LEDGER_TABLES = frozenset({
    "alembic_version", "api_key", "attempt", "beat", "block_bits", "block_group", "block_mark", "breaker_closed",
    "configuration", "configuration_change", "dead_letter", "dead_letter_count", "delivery", "dismissed", "endpoint",
    "event", "event_type", "handoff", "health", "idempotency", "node", "notice", "receipt", "replay", "replayed",
    "secret", "tenant",
})  # fmt: skip


class DialectOfConnection(Protocol):
    """A dialect of SQLAlchemy."""

    @property
    def name(self) -> str: ...


class MigratedConnection(Protocol):
    """A connection of SQLAlchemy, as `op.get_bind()` gives it: also one that prints (`alembic upgrade --sql`)."""

    @property
    def dialect(self) -> DialectOfConnection: ...
    @property
    def execute(self) -> Callable[..., object]: ...


def statements(dialect: str, table: str = TABLE, *, down: bool = False) -> list[str]:
    """SQL that makes the tables, or removes them with everything in them. `dialect`: sqlite, postgresql, mysql or mariadb.

    Raises ValueError for another one, and Problem `bad_table`.
    """
    known: Dialect | None = next(
        (each for each in DIALECTS if each == ("mysql" if dialect == "mariadb" else dialect)), None
    )
    if known is None:
        raise ValueError(f"there is no dialect {dialect!r}: sqlite, postgresql, mysql or mariadb")
    return drop(known, table) if down else create(known, table)


def upgrade(connection: MigratedConnection, table: str = TABLE) -> None:
    """Make the tables."""
    from surehook.outbox.stores import defining

    for statement in statements(connection.dialect.name, table):
        connection.execute(defining(statement))


def downgrade(connection: MigratedConnection, table: str = TABLE) -> None:
    """Remove the tables with everything in them: flush the outbox first."""
    from surehook.outbox.stores import defining

    for statement in statements(connection.dialect.name, table, down=True):
        connection.execute(defining(statement))


def include_names(*, table: str = TABLE, ledger: bool = False) -> IncludeName:
    """For Alembic's `context.configure(include_name=…)`: a function that is True for the application's own names. `ledger`: that
    of a server is in the same SQLite file, and its tables are not the application's either."""
    name = table.rpartition(".")[2]
    others = {name, f"{name}_refused", f"{name}_sequence"} | (LEDGER_TABLES if ledger else set())

    def include(name: str | None, type_: str, parent_names: Mapping[str, object]) -> bool:
        return not (type_ == "table" and name in others)

    return include


include_name = include_names()
