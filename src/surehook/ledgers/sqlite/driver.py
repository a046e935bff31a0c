"""The SQLite binding that the ledger uses; by default the standard library's.

Another binding (a test's, over its own file system) subclasses `Driver`. The ledger uses only what all bindings have:
`connection.execute(sql, parameters)`, `.fetchall()`, `.in_transaction`, `.close()`.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Protocol

# Another process (a shell, a copy) may write for at most this long, in seconds.
BUSY_TIMEOUT_S = 2.0
# Prepared statements per connection: about twenty templates in eighteen batch sizes each, and the others.
CACHED_STATEMENTS = 512


class SqliteConnection(Protocol):
    """The common subset of the bindings' connections."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Any = (), /) -> Any: ...

    def close(self) -> None: ...


class Driver:
    """The standard library's binding.

    errors          what the binding raises
    on_disk         the path names a file of the operating system, to be locked and its free space watched
    busy_timeout_s  the longest wait for another process's transaction
    """

    errors: type[Exception] = sqlite3.Error
    on_disk: bool = True
    busy_timeout_s: float = BUSY_TIMEOUT_S

    def connect(self, path: str) -> SqliteConnection:
        """Connect in autocommit mode: transactions are begun and ended explicitly."""
        _bind_plainly()
        return sqlite3.connect(
            path,
            timeout=self.busy_timeout_s,
            isolation_level=None,
            cached_statements=CACHED_STATEMENTS,
            check_same_thread=False,
        )

    def changes(self, connection: object, cursor: Any) -> int:
        """Return the number of rows that the statement of `cursor` has written."""
        return int(cursor.rowcount)

    def code(self, error: Exception) -> int | None:
        """Return SQLite's extended result code of an error; None if SQLite never saw the statement."""
        code = getattr(error, "sqlite_errorcode", None)
        return code if isinstance(code, int) else None

    def copy(self, source: Any, destination: object) -> None:
        """Copy a whole database between two connections by the online backup API, as of one instant."""
        source.backup(destination, pages=-1)


def _bind_plainly() -> None:
    """Register identity adapters for bytes and None, so that binding them is faster.

    The standard library looks for an adapter for every value that is not int, float, str or bytearray, and not finding one
    costs 360 ns for bytes and 275 ns for None; with the identities it is 170 and 100. Rows of the ledger bind about ten such
    values. The adapters apply to the whole process and change no value.
    """
    identities: tuple[tuple[type, Any], ...] = ((bytes, bytes.__bytes__), (type(None), {}.get))
    for kind, identity in identities:
        if (kind, sqlite3.PrepareProtocol) not in sqlite3.adapters:
            sqlite3.register_adapter(kind, identity)
