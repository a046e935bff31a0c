"""Arrays as we encode them are what asyncpg's own codecs and the server make of the same values."""

from __future__ import annotations

from typing import Any

import asyncpg
import pytest

from surehook.ledgers.postgres import arrays
from tests.servers import Postgres

VALUES: dict[str, list[list[Any]]] = {
    "bytea[]": [
        [],
        [b"a"],
        [bytes(16)] * 3,
        [b"", bytes(16), b"x" * 5000],
        [None, b"", b"y"],
        [None, None],
        [b"", b""],
        [b"ab"] * 3,
        [b"x" * 5000] * 2,
        [b"ab", b"ab", None],
        [b"ab", b"ab", b"c"],
    ],
    "text[]": [[], ["a", ""], ["ä€😀", None, "x" * 5000], [None], ["", ""], ["ä€"] * 3, ["a", "a", None]],
    "bigint[]": [[], [0, -1, 2**63 - 1, -(2**63)], [1, None, 3], [None], [-7] * 3, [5, 5, 6], [5, 5, None]],
    "int[]": [[], [0, -1, 2**31 - 1], [None, 5], [2**31 - 1] * 2],
    "smallint[]": [[], [0, -1, 2**15 - 1], [None, 5], [-(2**15)] * 2],
    "bool[]": [[], [True, False], [None, True], [True, True], [False] * 3, [True, True, None]],
}
ASKED = [(kind, column) for kind, columns in VALUES.items() for column in columns]


@pytest.fixture
def place(postgres: Postgres) -> str:
    """A database that is there anyway: nothing here is written."""
    return postgres.url("postgres")


@pytest.fixture
def installed(beside: Any) -> Any:
    arrays.install(beside)
    return beside


@pytest.mark.parametrize(("kind", "column"), ASKED)
@pytest.mark.parametrize("make", [list, tuple])
async def test_a_column_arrives_as_it_was_and_comes_back(
    beside: Any, kind: str, column: list[Any], make: Any
) -> None:
    plain = await beside.fetch(f"select * from unnest($1::{kind}) v(x)", column)
    arrays.install(beside)
    await beside.reload_schema_state()
    there = await beside.fetch(f"select x, 1 from unnest($1::{kind}) v(x)", make(column))
    if any(one is not None for one in column):  # a column without any value is sent as an empty one
        assert [row[0] for row in there] == [row[0] for row in plain] == column
        assert await beside.fetchval(f"select $1::{kind}", make(column)) == column
    else:
        assert there == []


async def test_the_bytes_are_those_that_the_server_sends(beside: Any) -> None:
    for kind, column in ASKED:
        encode, decode = arrays.CODECS[await beside.fetchval("select $1::text::regtype::oid", kind)]
        said = await beside.fetchval(f"select array_send($1::{kind})", column)
        assert decode(said) == column
        if not column or any(one is not None for one in column):
            assert encode(column) == said, (kind, column)


@pytest.mark.parametrize("oid", arrays.CODECS)
def test_a_column_without_any_value_is_an_empty_array(oid: int) -> None:
    encode, _ = arrays.CODECS[oid]
    assert encode([None, None]) == encode([])


class Text(str):
    """A text that knows how often it was encoded."""

    times = 0

    def encode(self, *args: Any) -> bytes:
        self.times += 1
        return super().encode(*args)


class Octets(bytes):
    """Bytes that know how often they were measured."""

    times = 0

    def __len__(self) -> int:
        self.times += 1
        return super().__len__()


@pytest.mark.parametrize(("oid", "one"), [(1009, Text("one")), (1001, Octets(b"one"))])
def test_a_column_that_says_one_thing_is_encoded_once(oid: int, one: Any) -> None:
    arrays.CODECS[oid][0]([one] * 100)
    assert one.times < 5


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        ("int[]", [2**31]),
        ("bigint[]", [2**63]),
        ("smallint[]", [None, 2**15]),
        ("text[]", ["\ud800"]),
        ("int[]", [2**31] * 2),
        ("text[]", ["\ud800"] * 2),
    ],
)
async def test_a_value_that_does_not_fit_is_the_callers_data(
    installed: Any, kind: str, column: list[Any]
) -> None:
    with pytest.raises(asyncpg.DataError):
        await installed.fetch(f"select $1::{kind}", column)


async def test_a_connection_without_the_way_in_keeps_its_own_codecs(beside: Any) -> None:
    class Bare:
        pass

    arrays.install(Bare())  # type: ignore[arg-type]
    assert await beside.fetchval("select $1::int[]", [1, 2]) == [1, 2]
