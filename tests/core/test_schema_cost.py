"""Schemas that multiply: refused where they are registered, or where an event would cost too much; counted, not waited for."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from surehook.core import limits
from surehook.core.errors import Problem
from surehook.core.pattern_cost import weigh
from surehook.core.schema import compile_schema, kept_in_steps
from surehook.core.steps import at_once

BOUND_S = 1.5  # of processor time; the worst is below 0.2 on an idle machine, and unbounded they take seconds to years


def chain(length: int) -> dict[str, Any]:
    """Two references to what has two references to what …"""
    pairs = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(length)}
    return {"$defs": {**pairs, f"d{length}": {"type": "object"}}, "$ref": "#/$defs/d0"}


def at_a(schema: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"a": schema}}


def unevaluated(depth: int) -> dict[str, Any]:
    made: dict[str, Any] = {"unevaluatedProperties": {"type": "integer"}}
    for _ in range(depth):
        made = {"allOf": [made], "unevaluatedProperties": {"type": "integer"}}
    return made


def judged(schema: Any, data: Any) -> Problem | None:
    """Within the bound."""
    begun = time.process_time()
    try:
        return at_once(kept_in_steps(json.dumps(schema).encode())).mismatch(
            json.dumps(data, separators=(",", ":")).encode()
        )
    finally:
        assert time.process_time() - begun < BOUND_S


@pytest.mark.parametrize(
    "schema", [chain(40), chain(3_000), unevaluated(25)], ids=["pairs", "many pairs", "unevaluated"]
)
def test_a_schema_that_is_too_much_for_anything_is_refused_and_a_kept_one_refuses(schema: Any) -> None:
    begun = time.process_time()
    with pytest.raises(Problem) as refused:
        compile_schema(json.dumps(schema).encode())
    assert time.process_time() - begun < BOUND_S
    assert (refused.value.code, refused.value.field) == ("invalid_schema", "schema")
    assert refused.value.hint

    problem = judged(schema, {})

    assert problem is not None and (problem.code, problem.field) == ("invalid_schema", "type")


TOO_COSTLY = {
    "contains": (
        at_a({"allOf": [{"contains": {"const": i}, "minContains": 0} for i in range(3_000)]}),
        {"a": [7] * 60_000},
    ),
    "multipleOf": (at_a({"items": {"multipleOf": 1e-300}}), {"a": [1e300] * 20_000}),
    "unevaluatedProperties": (
        {"allOf": [{"properties": {f"k{i}": {}}} for i in range(1_500)], "unevaluatedProperties": False},
        {f"k{i % 1_500}x{i}": 1 for i in range(15_000)},
    ),
    "enum of objects": (at_a({"items": {"enum": [{"x": i} for i in range(2_000)]}}), {"a": [{"x": 1_999}] * 12_000}),
    "enum of long numbers": (
        at_a({"items": {"enum": [10**300 + i for i in range(700)]}}),
        {"a": [10**300 + 699] * 800},
    ),
    "uniqueItems of long numbers": (at_a({"uniqueItems": True}), {"a": [10**300 + i for i in range(800)]}),
    "a pattern of 4,000 places": (at_a({"pattern": "(a|b)*a(a|b){1000}c"}), {"a": "abbabaab" * 25_000}),
    "alternatives of themselves": (
        {"properties": {"c": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}},
        json.loads('{"c":' * 60 + "1" + "}" * 60),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_COSTLY)
def test_an_event_that_is_too_much_for_its_schema_is_refused_before_it_is_judged(name: str) -> None:
    schema, data = TOO_COSTLY[name]

    problem = judged(schema, data)

    assert problem is not None
    assert (problem.code, problem.field, problem.status) == ("schema_too_costly", "data", 422)
    assert problem.hint


def test_the_same_schemas_judge_what_is_small() -> None:
    for name in ("contains", "multipleOf", "unevaluatedProperties", "enum of objects"):
        problem = judged(TOO_COSTLY[name][0], {"b": 1})
        assert problem is None or problem.code == "schema_mismatch"


@pytest.mark.parametrize("items", [7, "abcdefgh12", {"k": 1}])
def test_a_payload_of_the_greatest_size_is_judged_by_a_common_schema(items: Any) -> None:
    size = len(json.dumps(items, separators=(",", ":"))) + 1
    data = {"a": [items] * ((limits.EVENT_BODY_BYTES - 100) // size)}
    schema = at_a(
        {
            "type": "array",
            "items": {
                "type": ["integer", "string", "object"],
                "minimum": 0,
                "pattern": "^[A-Za-z0-9_-]{1,64}$",
                "properties": {f"k{i}": {"type": "integer"} for i in range(10)} | {"k": {"type": "integer"}},
            },
        }
    )

    assert judged(schema, data) is None


def test_where_a_mismatch_is_is_not_searched_for_at_any_price() -> None:
    # Yes or no takes microseconds; an error for each item in each alternative took 40 s.
    schema = at_a({"anyOf": [{"items": {"type": "string"}}] * 10})

    problem = judged(schema, {"a": [7] * 20_000})

    assert problem is not None and (problem.code, problem.field) == ("schema_mismatch", "data")
    small = judged(schema, {"a": [7]})
    assert small is not None and (small.code, small.field) == ("schema_mismatch", "data.a")


def test_numbers_with_exponents_are_read_quickly() -> None:
    assert judged(at_a({"maxItems": 50_000}), {"a": [1e300] * 40_000}) is None


def test_what_is_dear_to_compile_is_refused() -> None:
    begun = time.process_time()
    for schema in (
        {"allOf": [{}] * 80_000},
        {"properties": {f"a{i}": {"pattern": "(a|b|c){6000}"} for i in range(90)}},
    ):
        with pytest.raises(Problem, match="at most"):
            compile_schema(json.dumps(schema, separators=(",", ":")).encode())
    assert time.process_time() - begun < BOUND_S


@pytest.mark.parametrize(
    "draft", ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
)
def test_references_are_followed_by_name_place_and_base(draft: str) -> None:
    """A chain that multiplies, spelled in each way a reference may be spelled."""
    for spell in (
        lambda i: ({"$id": f"https://example.com/d{i}"}, f"https://example.com/d{i}"),
        lambda i: ({"$id": f"/d{i}"}, f"d{i}"),
    ):
        defs: dict[str, Any] = {"end": {"type": "object"}}
        for i in range(40):
            after = {"$ref": spell(i + 1)[1] if i < 39 else "https://example.com/root#/definitions/end"}
            defs[f"x{i}"] = {**spell(i)[0], "allOf": [after, after]}
        schema = {
            "$schema": draft,
            "$id": "https://example.com/root",
            "definitions": defs,
            "allOf": [{"$ref": spell(0)[1]}],
        }
        problem = judged(schema, {})
        assert problem is not None and "costs too much" in problem.detail


def test_the_schema_of_schemas_may_be_referred_to() -> None:
    schema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}

    assert judged(schema, {"type": "object", "properties": {"a": {"type": "string"}}}) is None
    assert judged(schema, {"type": 5}) is not None


def test_places_of_a_pattern_are_counted_with_their_repetitions() -> None:
    assert weigh("^[a-z]{64}$")[0] in range(64, 70)
    assert weigh("(ab|cd){10}x")[0] > 40
    assert weigh("((a{10}){10}){10}")[0] >= 1_000
