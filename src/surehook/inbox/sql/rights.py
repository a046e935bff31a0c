"""The right that a role lacks to make the tables, from a database's words, with the statement that grants it."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlalchemy import Engine

_SCHEMA = re.compile(r"permission denied for schema (\S+)")
_NO_SCHEMA = "no schema has been selected to create in"
_DENIED = " command denied to user "
_ALL = "CREATE, INDEX, SELECT, INSERT, UPDATE, DELETE"
_READ_ONLY = re.compile(r"readonly database|read-only transaction", re.IGNORECASE)


def missing_for(engine: Engine, otherwise: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Make a function that says what to do about an error while tables are made; `otherwise` says it of all others."""
    return lambda said: _missing(engine, said) or otherwise(said)


def _missing(engine: Engine, said: str) -> str | None:
    quote = engine.dialect.identifier_preparer.quote
    role = quote(engine.url.username) if engine.url.username else "its role"
    if found := _SCHEMA.search(said):
        return _granted(f"GRANT USAGE, CREATE ON SCHEMA {quote(found[1])} TO {role}")
    if _NO_SCHEMA in said:
        return (
            f"its search_path names no schema that {role} may use: GRANT USAGE, CREATE ON SCHEMA … TO {role}"
        )
    if _DENIED in said:
        return _granted(f"GRANT {_ALL} ON {quote(engine.url.database or '')}.* TO {role}")
    if _READ_ONLY.search(said):
        return "it can only be read: is it a replica, or a file or folder that this process may not write?"
    return None


def _granted(statement: str) -> str:
    return f"let its owner run {statement}, or what `surehook inbox ddl` prints"
