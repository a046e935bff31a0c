"""The session that a handler has in the place of a connection (`sessions=True`): the inbox commits and closes it.

It works in a savepoint of the inbox's transaction. A handler that rolls it back or closes it undoes that savepoint and no more:
the database refuses nothing, and the event would be processed without what its handler did. So the session notes it. What is
committed by the session stays in the inbox's transaction, and stands or falls with that.
"""

from __future__ import annotations

from sqlalchemy import Connection, event
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session, SessionTransaction

SESSION_ENDED = (
    "the handler has rolled back or closed its session after it used it (rollback, close, reset, `with tx:`), so what it did is "
    "not kept: let the inbox commit and close it, and use tx.begin_nested() for a part that may fail"
)


class HandlerSession(Session):
    """A session that notes how a handler ends it.

    has_lost_work  it was used, and then ended by something else than a commit
    """

    has_lost_work = False
    is_committed = False  # it has been, and that is about to end its transaction


def blocking_session(connection: Connection) -> HandlerSession:
    """Make the session of a handler that is an ordinary function."""
    return HandlerSession(connection, join_transaction_mode="create_savepoint")


def async_session(connection: AsyncConnection | None) -> AsyncSession:
    """Make the session of a coroutine."""
    return AsyncSession(
        connection, sync_session_class=HandlerSession, join_transaction_mode="create_savepoint"
    )


def has_lost_work(session: Session) -> bool:
    """Tell whether a handler's session was ended, and not by a commit, after it was used."""
    return isinstance(session, HandlerSession) and session.has_lost_work


def _committed(session: HandlerSession) -> None:
    # Of a savepoint of the handler's own, this tells nothing.
    if session.get_nested_transaction() is None:
        session.is_committed = True


def _ended(session: HandlerSession, transaction: SessionTransaction) -> None:
    # SQLAlchemy begins a transaction with the first use of the session, also with objects that are not flushed yet.
    if transaction.parent is None:
        session.has_lost_work |= not session.is_committed
        session.is_committed = False


event.listen(HandlerSession, "after_commit", _committed)
event.listen(HandlerSession, "after_transaction_end", _ended)
