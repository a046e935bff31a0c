"""Transactions of the inbox that a handler ends: refused where it asks for that, found where it does not."""

from __future__ import annotations

from surehook.core.errors import causes
from surehook.ports.inbox import StoreError

# In a connection's `info`: a statement of the handler has failed, and it may have gone on.
FAILED_WITHIN = "surehook_inbox_failed"
REFUSED = "the inbox commits: a handler may only use savepoints (begin_nested)"
REFUSED_STATEMENT = (
    "the inbox commits: this statement would end the transaction, so it was not said (on MySQL and MariaDB, CREATE, ALTER, DROP, "
    "TRUNCATE and LOCK TABLES do that too). Say it elsewhere; a handler may only use savepoints (begin_nested)"
)
ENDED_IT = (
    "a statement of the handler has ended the transaction (COMMIT or ROLLBACK as a statement, or by the driver's own "
    "connection; on MySQL and MariaDB also TRUNCATE, CREATE, ALTER, DROP and LOCK TABLES): what it did before that may stand, so "
    "the event is not tried again (what undoes a move is, after an hour). Let the inbox commit, use tx.begin_nested() for a part "
    "that may fail, and run such statements elsewhere; then look at what it did, and replay the event if that is safe"
)
# "no such savepoint", "no transaction"
_NO_SAVEPOINT, _NO_SAVEPOINT_MYSQL, _NO_SAVEPOINT_SQLITE = ("3B001", "25P01"), 1305, "no such savepoint"


class HandlerCommits(StoreError):
    """A handler called commit or rollback on the transaction that also marks its event processed."""


class HandlerEndedIt(HandlerCommits):
    """A statement of a handler has ended the transaction: what it had done stands, and there is no mark that it is done."""

    def __init__(self) -> None:
        super().__init__(ENDED_IT)


def lost_transaction(lost: Exception) -> StoreError:
    """The error of a handler after which the transaction cannot go on."""
    return StoreError(f"the transaction was lost in a handler: {lost.__class__.__name__}")


def has_failed(error: BaseException | None, kinds: tuple[type[BaseException], ...]) -> bool:
    """Tell whether the database has failed a handler, by an error of these kinds. That a savepoint of the handler's own is gone
    undoes nothing."""
    return any(isinstance(one, kinds) and not is_without_savepoint(one) for one in causes(error))


def is_without_savepoint(error: BaseException | None) -> bool:
    """Tell whether a driver says that there is no such savepoint, or no transaction."""
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    if state in _NO_SAVEPOINT:
        return True
    number = error.args[0] if error is not None and error.args else None
    return number == _NO_SAVEPOINT_MYSQL or _NO_SAVEPOINT_SQLITE in str(error)
