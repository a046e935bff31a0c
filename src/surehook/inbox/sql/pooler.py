"""Poolers that lend a connection to PostgreSQL for one transaction (PgBouncer's `pool_mode = transaction`).

A driver prepares a statement under a name, on the backend that it has just then, and runs it by that name later: on another
backend, where the name may be that of another client's statement. So rows of one handler were written into the table of another,
and its event was done. Through a pooler, therefore, nothing is prepared by a name. One in session mode looks the same from here,
and costs a driver its prepared statements too.

An application's own engine is set up by the application.
"""

from __future__ import annotations

from itertools import count

from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.util import await_only

_ASKS = "select pg_backend_pid()"
_numbers = count()
# Of SQLAlchemy's connection of asyncpg: what its arguments of the same names set for all.
_UNNAMED = {"_prepared_statement_cache": None, "_prepared_statement_name_func": lambda: ""}


def unprepared(driver: DBAPIConnection) -> bool:
    """Prepare nothing by a name on a new connection, if a pooler has made it; whether one has."""
    own = getattr(driver, "driver_connection", driver)
    if hasattr(own, "get_server_pid"):  # asyncpg
        if await_only(own.fetchval(_ASKS)) == own.get_server_pid():
            return False
        for name, value in _UNNAMED.items():
            setattr(driver, name, value)
        return True
    if hasattr(own, "prepare_threshold"):  # psycopg
        cursor = driver.cursor()
        try:
            cursor.execute(_ASKS)
            row = cursor.fetchone()
        finally:
            cursor.close()
        driver.rollback()
        if tuple(row or ()) != (own.info.backend_pid,):
            own.prepare_threshold = None
            return True
    return False


def asyncpg_arguments() -> dict[str, object]:
    """Arguments for asyncpg: what it asks beside prepares nothing by a name, and what SQLAlchemy prepares has names of ours."""
    return {"statement_cache_size": 0, "prepared_statement_name_func": _named}


def _named() -> str:
    return f"surehook_inbox_{next(_numbers)}"
