"""Compiling statements to text, once per form: the same list with other values is not compiled again.

Compiling takes about half a millisecond per statement, and a list has several: without this a connection's thread would
spend that time on texts it has made before.
"""

from __future__ import annotations

from sqlalchemy import ClauseElement
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql.compiler import SQLCompiler

from surehook.ledgers.common.steps import Again, Statement

# Compiled forms, of some 5 KB each. Lists have a form for each combination of filters.
FORMS_KEPT = 1_000


class Compiler:
    """Compiles for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._forms: dict[object, SQLCompiler] = {}
        self._last: tuple[ClauseElement, SQLCompiler, dict[str, object]] | None = None

    def __call__(self, statement: Statement) -> tuple[SQLCompiler, dict[str, object]]:
        """Return the compiled form, and the statement's own values by name."""
        if not isinstance(statement, Again):
            return self._compiled(statement)
        last = self._last
        if last is None or last[0] is not statement.statement:
            last = self._last = (statement.statement, *self._compiled(statement.statement))
        return last[1], {**last[2], **statement.values}

    def _compiled(self, statement: ClauseElement) -> tuple[SQLCompiler, dict[str, object]]:
        key = statement._generate_cache_key()
        if key is None:
            # A part of the statement has no cache key.
            form = statement.compile(dialect=self._dialect)
            assert isinstance(form, SQLCompiler)
            return form, dict(form.params)
        known = self._forms.get(key.key)
        if known is None:
            if len(self._forms) >= FORMS_KEPT:
                self._forms.clear()
            made = statement.compile(dialect=self._dialect, cache_key=key)
            assert isinstance(made, SQLCompiler)
            known = self._forms[key.key] = made
        return known, dict(known.construct_params(extracted_parameters=key.bindparams))
