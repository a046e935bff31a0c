"""The traces of a handler's statements: for others in its transaction, and for the next one on its connection.

Read by their first words, and by default for the worse: a statement that is not known to change rows only may have set something
(SET, USE, CALL, a temporary table, a cursor, what stands behind a semicolon). Then the batch ends with this handler, so that
nobody else sees it. The end of the transaction takes it back on PostgreSQL, and a few statements at the end of its
connection's use what was set for longer. MySQL and MariaDB have neither: there the connection is closed, as it is everywhere
after a statement that takes away what drivers rely on.

What is within literals and comments says nothing, except in those comments that MySQL and MariaDB carry out.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from surehook.inbox.sql.harmless_functions import HARMLESS

TEXTS = 512  # that are remembered: those of a program's handlers, which say them again for each event
TEXT_CHARS = 2_000  # of one that is; longer ones have their values written into them
MYSQL = ("mysql", "mariadb")
_ROWS = (
    "ins", "upd", "del", "sel", "mer", "rep", "wit", "val", "sav", "rel", "rol", "loc", "cop", "exp", "sho", "des", "not",
)  # fmt: skip
# Beginnings of what ends with its transaction on MySQL and MariaDB; a lock of `get_lock` does not.
_OF_THE_TRANSACTION = ("ins", "upd", "del", "sel", "rep", "wit", "val", "sav", "rel", "rol", "exp", "sho", "des")  # fmt: skip
_LOCKS = "get_lock"
# Further statements, and functions and forms of queries and changes that set something.
_MORE = re.compile(
    r";|:=|\bset_config\b|\bpg_settings\b|\binto\s*(?:@|(?:local\s+|global\s+)?temp(?:orary)?\s+\w|\"?pg_temp\b)"
    r"|\Aexplain\b.*\bcreate\b",
    re.DOTALL,
)
# DEALLOCATE and DISCARD: drivers and SQLAlchemy keep prepared statements by their names. PREPARE and LISTEN stay otherwise.
_OF_THE_SESSION = re.compile(r"(?:\A|;\s*)(?:dea|dis|pre|lis)")
# On SQLite, whose temporary tables stay, and whose drivers take one statement at a time.
_OF_SQLITES_CONNECTION = ("pragma", "attach", "detach", "create")
# Ends of the transaction, all of it and not a savepoint's. Only as a whole statement: text that is stored may say anything. What
# stands behind a comment is found out afterwards, as what a procedure does (handler_commits.py).
_ENDING = r"commit|abort|end|prepare\s+transaction|rollback(?!(?:\s+(?:work|transaction))?\s+to\b)"
_ENDS = re.compile(rf"(?:{_ENDING})\b")
# Statements before which MySQL and MariaDB commit by themselves, as their manuals list them.
_COMMITS_MYSQL = (
    _ENDING, r"begin(?!\s+not\b)", r"start\s+transaction", r"xa(?!\s+recover\b)",
    r"create(?!\s+(?:or\s+replace\s+)?temporary\s+table\b)", r"drop(?!\s+(?:temporary\s+tables?|prepare)\b)",
    "alter", "truncate", "rename", "grant", "revoke", "optimize", "repair", "flush", "reset", "backup", "install", "uninstall",
    r"lock\s+tables?", r"(?:analyze|check)\s+(?:(?:no_write_to_binlog|local)\s+)?(?:tables?|view)", r"change\s+master",
    r"import\s+table", r"set\s+(?:password|default\s+role)",
    r"set\s+(?!global\b)(?:.*\W)??(?:(?<![\w@.])|@@(?:session\.|local\.)?)`?autocommit(?=`?\s*:?=)",
)  # fmt: skip
_ENDS_MYSQL = re.compile(rf"(?:{'|'.join(_COMMITS_MYSQL)})\b", re.DOTALL)
# Names before a parenthesis; not those of tables and of their columns.
_CALLS = re.compile(
    r"(?:\b(?P<list>as|into|table|update|join|with|recursive|references)\s+)?(?<![\w.$])(?P<name>[^\W\d][\w.$]*)\s*\("
)
_FOR_ONE = re.compile(r"\Aset\s+statement\b.*?\bfor\s+", re.DOTALL)
_BEFORE = "\ufeff \t\r\n\f\v;("

# Literals and comments, to the end where they are not closed, and quoted names, within which neither begins.
_QUOTED = r"'(?:[^']++|'')*+(?:'|\Z)"
_QUOTED_WITH_ESCAPES = r"'(?:[^'\\]++|\\.|'')*+(?:'|\Z)"
_NAMES = r'"(?:[^"]++|"")*+(?:"|\Z)'
_COMMENTS = r"/\*.*?(?:\*/|\Z)"
_DASHES = r"--[^\n]*"
_DOLLARS = r"(?<![\w$])(?P<mark>\$(?:[^\W\d]\w*)?\$).*?(?:(?P=mark)|\Z)"
_SILENT = {
    "postgresql": re.compile(
        rf"(?<!\w)[eE]{_QUOTED_WITH_ESCAPES}|{_QUOTED}|{_DOLLARS}|{_NAMES}|{_DASHES}|{_COMMENTS}", re.DOTALL
    ),
    "sqlite": re.compile(rf"{_QUOTED}|{_NAMES}|`[^`]*+`|\[[^\]]*+\]|{_DASHES}|{_COMMENTS}", re.DOTALL),
    "mysql": re.compile(
        rf'{_QUOTED_WITH_ESCAPES}|"(?:[^"\\]++|\\.|"")*+(?:"|\Z)|`[^`]*+`|--(?=\s|\Z)[^\n]*|\#[^\n]*|{_COMMENTS}', re.DOTALL
    ),
}  # fmt: skip
_CARRIED_OUT = re.compile(r"/\*M?!\d*(.*?)(?:\*/|\Z)", re.DOTALL)


class Traces(NamedTuple):
    """The traces of one statement.

    ends      it would end the transaction: what the handler did would stand, or be gone, and the mark with it
    changes   others in the transaction might see what it does, besides rows
    outlasts  the connection must not be given to others
    """

    ends: bool
    changes: bool
    outlasts: bool


def traces(statement: object, dialect: str) -> Traces:
    """Read a statement of a handler's, as a driver was given it."""
    text = statement if type(statement) is str else _text(statement)
    return _remembered(text, dialect) if len(text) <= TEXT_CHARS else _read(text, dialect)


def _text(statement: object) -> str:
    """The text of bytes, or of what psycopg composes."""
    if isinstance(statement, bytes):
        return statement.decode(errors="replace")
    try:
        return str(statement.as_string(None))  # type: ignore[attr-defined]
    except Exception:  # psycopg2 needs a connection for some; read for the worse
        return str(statement)


def _read(statement: str, dialect: str) -> Traces:
    said = _said(statement, dialect)
    if dialect in MYSQL:
        said = _FOR_ONE.sub("", said)
    has_more = _MORE.search(said) is not None
    return Traces(
        ends=not _is_behind_comment(statement)
        and (_ENDS_MYSQL if dialect in MYSQL else _ENDS).match(said) is not None,
        changes=has_more or not said.startswith(_ROWS) or _calls_others(said),
        outlasts=_outlasts(said, dialect, has_more),
    )


_remembered = lru_cache(maxsize=TEXTS)(_read)


def _calls_others(said: str) -> bool:
    """Tell whether it calls a function that may set anything: an application's own. A tenant is often set by one."""
    return any(
        found["list"] is None and found["name"].rpartition(".")[2] not in HARMLESS
        for found in _CALLS.finditer(said)
    )


def _is_behind_comment(statement: str) -> bool:
    begins = statement.lstrip(_BEFORE)
    return begins.startswith(("--", "#", "/*")) and not _CARRIED_OUT.match(begins)


def _outlasts(said: str, dialect: str, has_more: bool) -> bool:
    if dialect == "sqlite":
        return said.startswith(_OF_SQLITES_CONNECTION)
    if dialect == "postgresql":
        return _OF_THE_SESSION.search(said) is not None
    return has_more or _LOCKS in said or not said.startswith(_OF_THE_TRANSACTION)


def _said(statement: str, dialect: str) -> str:
    """Take away literals and comments, and what stands before the first word and behind the last."""
    if dialect in MYSQL:
        statement = _CARRIED_OUT.sub(r" \1 ", statement)
    silent = _SILENT.get("mysql" if dialect in MYSQL else dialect, _SILENT["postgresql"])
    return silent.sub(_silenced, statement).lstrip(_BEFORE).rstrip("; \t\r\n").lower()


def _silenced(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith(("--", "/*", "#")):
        return " "
    return text if text[0] in '"`[' and text[1:-1].isidentifier() else "''"
