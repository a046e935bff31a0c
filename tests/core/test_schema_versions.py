"""The schemas of one type side by side: which of them judges an event."""

from __future__ import annotations

import pytest

from surehook.core.errors import Problem
from surehook.core.model import EventType
from surehook.core.published import EventIn
from surehook.core.schema import Schema, compile_schema
from surehook.core.schema_versions import Versions, check, packed, unpacked

TEXT, NUMBER = compile_schema(b'{"type":"string"}'), compile_schema(b'{"type":"number"}')
FINE, MISMATCH, UNKNOWN = None, "schema_mismatch", "unknown_schema_version"


def event(version: str | None, data: bytes = b'"text"') -> EventIn:
    return EventIn(tenant="acme", type="a.b", data=data, schema_version=version)


@pytest.mark.parametrize(
    ("own", "others", "named", "code"),
    [
        # one schema for all: whatever is named
        (TEXT, None, None, FINE), (TEXT, None, "1", FINE), (TEXT, None, "7", FINE), (NUMBER, None, "7", MISMATCH),
        # told apart
        (TEXT, {}, None, FINE), (TEXT, {}, "1", FINE), (TEXT, {}, "2", UNKNOWN),
        (TEXT, {"2": NUMBER}, None, FINE), (TEXT, {"2": NUMBER}, "1", FINE), (TEXT, {"2": NUMBER}, "2", MISMATCH),
        (NUMBER, {"2": TEXT}, None, MISMATCH), (NUMBER, {"2": TEXT}, "1", MISMATCH), (NUMBER, {"2": TEXT}, "2", FINE),
        (TEXT, {"2": NUMBER}, "3", UNKNOWN), (TEXT, {"2": NUMBER}, "", UNKNOWN),
        # the type's own version may have none, or have it beside the others
        (None, {"2": NUMBER}, None, FINE), (None, {"2": NUMBER}, "1", FINE), (None, {"2": NUMBER}, "2", MISMATCH),
        (None, {"1": NUMBER}, None, MISMATCH), (None, {"1": TEXT}, "1", FINE), (None, {"1": TEXT}, "2", UNKNOWN),
    ],
)  # fmt: skip
def test_the_version_chooses_the_schema(
    own: Schema | None, others: dict[str, Schema] | None, named: str | None, code: str | None
) -> None:
    problem = Versions("1", own, others).refuses(event(named))
    assert (problem and problem.code) == code


def test_a_refused_version_names_the_known_ones_and_nothing_of_the_data() -> None:
    problem = Versions("1", TEXT, {"2": TEXT, "0.9": TEXT}).refuses(event("3", b'"secret"'))
    assert problem is not None
    assert (problem.field, problem.hint) == ("schema_version", "known: 0.9, 1, 2")
    assert "secret" not in problem.detail


def test_an_event_weighs_what_its_own_version_asks() -> None:
    heavy = compile_schema(b'{"type":"array","items":{"anyOf":[{"type":"object"},{"type":"number"}]}}')
    data = b"[" + b",".join([b"1"] * 500) + b"]"
    versions = Versions("1", TEXT, {"2": heavy})
    assert versions.weight(event("2", data)) == heavy.weight(data)
    assert versions.weight(event(None, data)) == versions.weight(event("1", data)) == TEXT.weight(data)
    assert versions.weight(event("3", data)) == Versions("1", None).weight(event(None, data)) == 0


def test_what_is_kept_comes_back_byte_for_byte() -> None:
    schemas = {"2": compile_schema(b'{ "type" :"number"}'), "1.0": TEXT}
    assert unpacked(packed(schemas)) == {version: one.source for version, one in schemas.items()}
    assert unpacked(packed({})) == unpacked(None) == {}


@pytest.mark.parametrize(
    ("schema", "version", "others", "fits"),
    [
        (b"{}", "1", b'{"2":{}}', True), (b"{}", "2", b'{"2":{}}', False), (None, "2", b'{"2":{}}', True),
        (b"{}", "2", None, True),
    ],
)  # fmt: skip
def test_a_version_has_one_schema(
    schema: bytes | None, version: str, others: bytes | None, fits: bool
) -> None:
    given = EventType("a.b", None, schema, version, None, 0, others)
    if fits:
        check(given)
        return
    with pytest.raises(Problem) as refused:
        check(given)
    assert (refused.value.code, refused.value.field) == ("invalid_schema", "schemas.2")
