"""Statements to text, once for each form: the same list with other values is not compiled again.

Compiling takes about half a millisecond a statement, and a list is made of several: without this a connection's thread
would spend it on texts that it had made before.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import ClauseElement
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql.compiler import SQLCompiler

from surehook.ledgers.common.steps import Again, Statement

# Texts and their places, some 5 KB each; lists have a form for each combination of filters.
FORMS_KEPT = 1_000


class Compiler:
    """Compiles for one dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._forms: dict[Any, SQLCompiler] = {}
        self._last: tuple[ClauseElement, SQLCompiler, dict[str, Any]] | None = None

    def __call__(self, statement: Statement) -> tuple[SQLCompiler, dict[str, Any]]:
        """The compiled form, and the statement's own values by name."""
        if not isinstance(statement, Again):
            return self._compiled(statement)
        last = self._last
        if last is None or last[0] is not statement.statement:
            last = self._last = (statement.statement, *self._compiled(statement.statement))
        return last[1], {**last[2], **statement.values}

    def _compiled(self, statement: ClauseElement) -> tuple[SQLCompiler, dict[str, Any]]:
        key = statement._generate_cache_key()
        if key is None:  # a part of it cannot say what it is made of
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
