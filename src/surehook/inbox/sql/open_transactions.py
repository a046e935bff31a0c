"""The transaction that a thread or task is in, asked and ended from outside."""

from __future__ import annotations

from contextlib import suppress
from typing import TypeAlias

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from surehook.inbox.sql import cutting, driver_connections
from surehook.inbox.sql.deferred_begin import Writer
from surehook.inbox.sql.driver_connections import HANDLING
from surehook.inbox.sql.handler_commits import FAILED_WITHIN
from surehook.ports.inbox import StoreError

Open: TypeAlias = tuple[Connection, Writer | None]

ENDED = "surehook_inbox_ended"  # in a connection's `info`: its handler had ended the transaction before that was cut


class AsksWithin(StoreError):
    """A handler asked the inbox for something while its own transaction keeps everybody from writing."""


def refuse_within(around: Open | None) -> None:
    """A second transaction would wait for the one around it, which waits for it. Raises AsksWithin."""
    if around is not None and around[1] is not None and around[1].has_turn:
        raise AsksWithin(
            "a handler cannot ask the inbox while its own transaction is SQLite's one writer: ask before the first use of tx "
            "(in a handler that is alone in its transaction), read with tx, or ask when the handler is done"
        )


def cut(one: Open | None) -> bool:
    """End it; whether that was possible."""
    if one is None:
        return True
    connection, writer = one
    if writer is not None:
        return writer.cut(connection)
    with suppress(Exception):  # it is closed
        if has_ended(one):
            connection.info[ENDED] = True
    try:
        own = connection.connection.driver_connection
        was_cut = own is None or cutting.cut(own)  # None: cut before
        driver_connections.let_go(connection)
        return was_cut
    except SQLAlchemyError:  # it is lost already
        return True


def has_ended(one: Open | None) -> bool:
    """Tell whether a handler has ended it. An error of the database may have undone it all instead."""
    if one is None:
        return False
    connection, writer = one
    if connection.info.get(ENDED):
        return True
    if not (writer is None or writer.is_open):
        return False
    is_handlers = HANDLING in connection.info and not connection.info.get(FAILED_WITHIN)
    return is_handlers and driver_connections.has_ended(connection)
