"""Statements that differ in their values alone share a text."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import ClauseElement, insert, literal, select, update
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.base import SQLiteDialect

from surehook.ledgers import schema
from surehook.ledgers.common.compiling import FORMS_KEPT, Compiler

DIALECTS = {"sqlite": SQLiteDialect(paramstyle="named"), "postgresql": PGDialect_asyncpg()}
NOTE = schema.configuration_change


def statements(value: Any) -> list[ClauseElement]:
    return [
        select(schema.tenant).where(schema.tenant.c.id == value),
        update(schema.tenant).where(schema.tenant.c.id == value).values(name=value),
        insert(schema.tenant).values(id=value, name="n", strict=False, created_at=1),
        insert(NOTE).from_select(
            ["version", "kind", "key"], select(literal(1), literal(value), literal(b"k"))
        ),
        select(schema.tenant).order_by(schema.tenant.c.id).limit(len(value)),
    ]


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS.keys())
@pytest.mark.parametrize("which", range(5))
def test_a_text_is_made_once_and_has_each_statements_values(dialect: Any, which: int) -> None:
    compiler = Compiler(dialect)
    first, first_values = compiler(statements("a")[which])
    second, second_values = compiler(statements("bcd")[which])
    plain = statements("bcd")[which].compile(dialect=dialect)
    assert second is first
    assert (second.string, second_values) == (str(plain), dict(plain.params))
    assert first_values != second_values


def test_what_is_kept_is_bounded() -> None:
    compiler = Compiler(DIALECTS["sqlite"])
    for number in range(FORMS_KEPT + 10):
        compiler(select(schema.tenant.c.id.label(f"c{number}")))
    assert len(compiler._forms) <= FORMS_KEPT
