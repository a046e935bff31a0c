"""The traces of a handler's statements: for others in its transaction, and for the next one on its connection.

Read by their first words, and by default for the worse: a statement that is not known to change rows only may have set something
(SET, USE, CALL, a temporary table, a cursor, what stands behind a comment or a semicolon). Then the batch ends with this handler,
so that nobody else sees it. The end of the transaction takes it back on PostgreSQL, and a few statements at the end of its
connection's use what was set for longer. MySQL and MariaDB have neither: there the connection is closed, as it is everywhere
after a statement that takes away what drivers rely on.
"""

from __future__ import annotations

import re

_ROWS = (
    "ins", "upd", "del", "sel", "mer", "rep", "wit", "val", "sav", "rel", "rol", "loc", "cop", "exp", "sho", "not",
)  # fmt: skip
# Beginnings of what ends with its transaction on MySQL and MariaDB; a lock of `get_lock` does not.
_OF_THE_TRANSACTION = ("ins", "upd", "del", "sel", "rep", "wit", "sav", "rel", "rol")
_SETTINGS = ("set_config", "into @", ":=")  # of functions and of a SELECT
_LOCKS = "get_lock"
# DEALLOCATE and DISCARD: drivers and SQLAlchemy keep prepared statements by their names. PREPARE and LISTEN stay otherwise.
_OF_THE_SESSION = ("dea", "dis", "pre", "lis")
# Neither the end of the transaction nor its rows are to be had after these, and no error says so.
_ENDS = re.compile(
    r"\s*(?:prepare\s+transaction\b|xa\s+prepare\b|(?:commit|rollback)\b.*\brelease\b)",
    re.IGNORECASE | re.DOTALL,
)


def ends_for_good(statement: str) -> bool:
    """Tell whether it ends the transaction in a way that is not to be found out: prepared for two phases, or with the session."""
    return _ENDS.match(statement) is not None


def changes_session(statement: str) -> bool:
    """Tell whether others in the transaction might see what it does, besides rows."""
    said = statement.strip("; \n\t").lower()
    return not said.startswith(_ROWS) or ";" in said or _has_settings(said)


def outlasts_transaction(statement: str, *, is_postgresql: bool) -> bool:
    """Tell whether the connection must not be given to others."""
    said = statement.strip("; \n\t").lower()
    if is_postgresql:
        return said.startswith(_OF_THE_SESSION) or ("deallocate" in said and ";" in said)
    return not said.startswith(_OF_THE_TRANSACTION) or ";" in said or _LOCKS in said or _has_settings(said)


def _has_settings(said: str) -> bool:
    return any(one in said for one in _SETTINGS)
