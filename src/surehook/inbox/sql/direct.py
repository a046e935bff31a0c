"""Statements without values or rows, told to the driver itself: SQLAlchemy's part in a savepoint costs more than the savepoint,
and there are two an event."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.util import await_only

# Drivers that take several statements in one message; others would refuse, or take the first one alone.
SEVERAL = ("asyncpg", "psycopg")


def say(connection: Connection, statement: str) -> None:
    """Run a statement. Raises what SQLAlchemy would."""
    dialect, own = connection.dialect, connection.connection
    try:
        if dialect.driver == "asyncpg":
            driver: Any = own.driver_connection
            await_only(driver.execute(statement))
            return
        # `closing` costs more than half of such a statement.
        cursor = own.cursor()
        try:
            cursor.execute(statement)
        finally:
            cursor.close()
    except dialect.loaded_dbapi.Error as error:
        is_lost = dialect.is_disconnect(error, own.dbapi_connection, None)
        if is_lost:
            connection.invalidate(error)
        raise DBAPIError.instance(
            statement,
            None,
            error,
            dialect.loaded_dbapi.Error,
            connection_invalidated=is_lost,
            dialect=dialect,
        ) from error
