"""The traces of a handler's statements: for others in its transaction, and for the next one on its connection.

Read by their first words, and by default for the worse: a statement that is not known to change rows only may have set something
(SET, USE, CALL, a temporary table, a cursor, what stands behind a semicolon). Then the batch ends with this handler, so that
nobody else sees it. The end of the transaction takes it back on PostgreSQL, and a few statements at the end of its
connection's use what was set for longer. MySQL and MariaDB have neither: there the connection is closed, as it is everywhere
after a statement that takes away what drivers rely on.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

TEXTS = 512  # that are remembered: those of a program's handlers, which say them again for each event
TEXT_CHARS = 2_000  # of one that is; longer ones have their values written into them
MYSQL = ("mysql", "mariadb")
_ROWS = (
    "ins", "upd", "del", "sel", "mer", "rep", "wit", "val", "sav", "rel", "rol", "loc", "cop", "exp", "sho", "des", "not",
)  # fmt: skip
# Beginnings of what ends with its transaction on MySQL and MariaDB; a lock of `get_lock` does not.
_OF_THE_TRANSACTION = ("ins", "upd", "del", "sel", "rep", "wit", "val", "sav", "rel", "rol", "exp", "sho", "des")  # fmt: skip
_LOCKS = "get_lock"
# Further statements, and functions and forms of SELECT that set something.
_MORE = re.compile(r";|:=|\bset_config\b|\binto\s+(?:@|temp)")
_BEFORE = re.compile(r"\A(?:\s|\(|--[^\n]*\n|/\*(?!!|M!).*?\*/)+", re.DOTALL)
_LITERAL = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"[^\"]*\"", re.DOTALL)
# DEALLOCATE and DISCARD: drivers and SQLAlchemy keep prepared statements by their names. PREPARE and LISTEN stay otherwise.
_OF_THE_SESSION = ("dea", "dis", "pre", "lis")
# On SQLite, whose temporary tables stay, and whose drivers take one statement at a time.
_OF_SQLITES_CONNECTION = ("pragma", "attach", "detach", "create")
# Ends of the transaction, all of it and not a savepoint's. Only as a whole statement: text that is stored may say anything.
_ENDS = r"\s*(?:commit|abort|end|prepare\s+transaction|rollback(?!(?:\s+(?:work|transaction))?\s+to\b))\b"
_ENDS_ANYWHERE = re.compile(_ENDS, re.IGNORECASE)
# Statements before which MySQL and MariaDB commit by themselves.
_ENDS_MYSQL = re.compile(
    rf"{_ENDS}|\s*(?:begin(?!\s+not\b)|start\s+transaction|xa|(?:create(?:\s+or\s+replace)?|drop)(?!\s+temporary)|alter|truncate"
    r"|rename|lock\s+tables?|grant|revoke|analyze|optimize|repair|flush|set\s+(?:session\s+|@@(?:session\.)?)?autocommit)\b",
    re.IGNORECASE,
)


class Traces(NamedTuple):
    """The three answers below, of one statement."""

    ends: bool
    changes: bool
    outlasts: bool


def traces(statement: str, dialect: str) -> Traces:
    """Read a statement of a handler's."""
    return _remembered(statement, dialect) if len(statement) <= TEXT_CHARS else _read(statement, dialect)


def _read(statement: str, dialect: str) -> Traces:
    return Traces(
        ends_transaction(statement, dialect),
        changes_session(statement),
        outlasts_transaction(statement, dialect),
    )


_remembered = lru_cache(maxsize=TEXTS)(_read)


def ends_transaction(statement: str, dialect: str) -> bool:
    """Tell whether a statement would end the transaction: what the handler did would stand, or be gone, and the mark with it."""
    return (_ENDS_MYSQL if dialect in MYSQL else _ENDS_ANYWHERE).match(statement) is not None


def changes_session(statement: str) -> bool:
    """Tell whether others in the transaction might see what it does, besides rows."""
    said = _first_words(statement)
    return not said.startswith(_ROWS) or _has_more(said)


def outlasts_transaction(statement: str, dialect: str) -> bool:
    """Tell whether the connection must not be given to others."""
    said = _first_words(statement)
    if dialect == "sqlite":
        return said.startswith(_OF_SQLITES_CONNECTION)
    if dialect == "postgresql":
        return said.startswith(_OF_THE_SESSION) or ("deallocate" in said and _has_more(said))
    return not said.startswith(_OF_THE_TRANSACTION) or _LOCKS in said or _has_more(said)


def _first_words(statement: str) -> str:
    """Take away what stands before them: comments, except those that MySQL and MariaDB carry out, and parentheses."""
    return _BEFORE.sub("", statement, count=1).rstrip("; \n\t").lower()


def _has_more(said: str) -> bool:
    """Tell whether there is another statement behind a semicolon, or one that sets something; neither within a literal."""
    return _MORE.search(said) is not None and _MORE.search(_LITERAL.sub("", said)) is not None
