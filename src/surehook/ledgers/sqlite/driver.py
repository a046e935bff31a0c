"""The driver seam: what the ledger needs of a SQLite binding, and the standard library's one.

Another binding (a test's, over its own file system) subclasses `Driver`. The ledger keeps to what all
have: `connection.execute(sql, parameters)`, `.fetchall()`, `.in_transaction`, `.close()`.
"""

from __future__ import annotations

import sqlite3
from typing import Any, Protocol

# Another process may write for a moment (a shell, a copy); no longer than this, in seconds.
BUSY_TIMEOUT_S = 2.0
# Prepared statements kept per connection: about twenty templates in eighteen batch sizes, and the rest.
CACHED_STATEMENTS = 512


class Connection(Protocol):
    """The common subset of the bindings' connections."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Any = (), /) -> Any: ...

    def close(self) -> None: ...


class Driver:
    """The standard library's binding.

    errors          what the binding raises
    on_disk         the path names a file of the operating system: it is locked, its free space watched
    busy_timeout_s  how long to wait for another process's transaction
    """

    errors: type[Exception] = sqlite3.Error
    on_disk: bool = True
    busy_timeout_s: float = BUSY_TIMEOUT_S

    def connect(self, path: str) -> Connection:
        """A connection in autocommit mode: transactions are begun and ended by hand."""
        _bind_plainly()
        return sqlite3.connect(
            path,
            timeout=self.busy_timeout_s,
            isolation_level=None,
            cached_statements=CACHED_STATEMENTS,
            check_same_thread=False,
        )

    def changes(self, connection: Any, cursor: Any) -> int:
        """How many rows the statement that `cursor` ran has written."""
        return int(cursor.rowcount)

    def code(self, error: Exception) -> int | None:
        """SQLite's extended result code of an error; None where SQLite never saw the statement."""
        code = getattr(error, "sqlite_errorcode", None)
        return code if isinstance(code, int) else None

    def copy(self, source: Any, destination: Any) -> None:
        """Copy a whole database between two connections by the online backup API, as of one instant."""
        source.backup(destination, pages=-1)


def _bind_plainly() -> None:
    """Spare bound bytes and None the search for an adapter.

    The standard library looks for a way to adapt every value that is not int, float, str or bytearray,
    and pays for not finding one: 360 ns for bytes and 275 ns for None, of which registered identities
    leave 170 and 100. Rows of the ledger bind about ten of them. They are the process's, and change nothing.
    """
    identities: tuple[tuple[type, Any], ...] = ((bytes, bytes.__bytes__), (type(None), {}.get))
    for kind, identity in identities:
        if (kind, sqlite3.PrepareProtocol) not in sqlite3.adapters:
            sqlite3.register_adapter(kind, identity)
