"""Batch statements: every row once, in pieces of known sizes."""

from __future__ import annotations

import sqlite3
from importlib.resources import files
from itertools import pairwise

import pytest

from surehook.ledgers.sqlite.statements import SIZES, Batch, query, read_all


@pytest.mark.parametrize("count", [1, 2, 5, 63, 64, 65, 400, 511, 512, 513, 1_500])
def test_every_row_arrives_once(count: int) -> None:
    file = sqlite3.connect(":memory:")
    file.execute("create table dead_letter (delivery, request_headers)")
    rows = [(number + 1, -number) for number in range(count)]
    for sql, parameters in Batch("dead_letters").pieces([value for row in rows for value in row]):
        file.execute(sql, parameters)
    assert file.execute("select * from dead_letter order by delivery").fetchall() == rows
    file.close()


def test_no_file_is_read_once_all_were_read() -> None:
    read_all()
    for file in files("surehook.ledgers.sqlite").joinpath("queries").iterdir():
        misses = query.cache_info().misses
        query(file.name.removesuffix(".sql"))
        assert query.cache_info().misses == misses, file.name


def test_nothing_is_run_for_no_rows() -> None:
    assert list(Batch("dead_letters").pieces([])) == []


def test_sizes_waste_less_than_half() -> None:
    for smaller, larger in pairwise(SIZES):
        assert larger <= 2 * smaller
