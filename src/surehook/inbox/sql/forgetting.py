"""Taking back what a handler has set for its session: the next to use the connection may be whoever stores requests.

After the commit, as the connection goes back to its pool. Where a pooler lends it (pooler.py), somebody else has that backend by
then, so there it is taken back before the commit.

Only on the inbox's own engines on PostgreSQL: an application sets its connections up itself, and MySQL and MariaDB cannot.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.util import await_only

from surehook.inbox.sql import direct
from surehook.inbox.sql.driver_connections import CHANGED, HANDLED, POOLED, pooled

_FORGET = "SET SESSION AUTHORIZATION DEFAULT; RESET ALL; SELECT pg_advisory_unlock_all(); DISCARD TEMP"


def after_commit(driver: Any, record: Any) -> None:
    """Forget what was set, if a handler had the connection; for SQLAlchemy's event `checkin`."""
    if record.info.pop(HANDLED, None) is None or driver is None:
        return
    own = getattr(driver, "driver_connection", driver)
    try:
        if driver is not own:  # asyncpg, whose cursors take one statement at a time
            await_only(own.execute(_FORGET))
            return
        with closing(driver.cursor()) as cursor:
            cursor.execute(_FORGET)
        driver.commit()
    except Exception as error:  # what was committed with it stands; the pool makes another
        record.invalidate(error)


def before_commit(connection: Connection) -> None:
    """Forget what was set, if a handler may have set something and a pooler lends the connection."""
    if not (connection.closed or connection.invalidated):
        notes = pooled(connection).info
        if POOLED in notes and CHANGED in notes:
            direct.say(connection, _FORGET)
