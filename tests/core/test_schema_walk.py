"""The count goes through a payload level by level, and finds what going through it value by value finds."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from surehook.core import limits
from surehook.core.schema import compile_schema
from surehook.core.schema_cost import BUILD, REPEATED, Counter, counting
from surehook.core.schema_parts import HUGE, LONG, MULTIPLE, UNEVALUATED, TooMuch, inside, is_long
from surehook.core.schema_sets import PLAIN, State
from surehook.core.steps import at_once
from tests.budget import examples

NO_END = 1 << 100


def value_by_value(counter: Counter, data: Any) -> tuple[int, int]:
    """Steps, and those with errors."""
    steps = errors = 0
    met: set[State] = set()
    waiting: list[tuple[Any, State]] = [(data, counter._start)]
    while waiting:
        value, state = waiting.pop()
        if state not in met:
            met.add(state)
            steps += BUILD * len(state.nodes)
        steps += state.steps
        errors += state.errors
        if isinstance(value, str):
            steps += size(value) * min(state.text, state.tokens * size(value))
        elif isinstance(value, dict):
            steps += state.compound + UNEVALUATED * state.unevaluated * len(value) * len(state.nodes)
            for key, inner in value.items():
                steps += state.key_text * size(key)
                waiting.append((inner, counter._at_key(state, key if key in state.known else None)))
        elif isinstance(value, list):
            steps += state.compound + UNEVALUATED * state.unevaluated * len(value) * len(state.nodes)
            steps += state.contains * len(value) + state.unique * 16 * len(value)
            if any(map(is_long, inside(value))):
                steps += state.unique * LONG * len(value) ** 2
            for place, inner in enumerate(value):
                waiting.append((inner, counter._at_item(state, min(place, state.prefix))))
        elif state.multiple and value is not None and not isinstance(value, bool):
            plain = -PLAIN <= value <= PLAIN
            steps += HUGE * (state.huge if plain else state.multiple) + MULTIPLE * state.multiple
    return steps, steps + REPEATED * steps + errors


def size(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)


KEYS = some.sampled_from(["a", "b", "ab", "é"])
NUMBERS = some.sampled_from([0, -7, 2**63, 10**30, 1.5, 1e300, 1e15])
DATA: some.SearchStrategy[Any] = some.recursive(
    some.none() | some.booleans() | NUMBERS | some.text("aé", max_size=4),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(KEYS, inner, max_size=4),
    max_leaves=30,
)
LEAVES: some.SearchStrategy[Any] = some.sampled_from(
    [
        True, {}, {"uniqueItems": True}, {"multipleOf": 2}, {"multipleOf": 1e-12}, {"pattern": "^(a|b)*$"}, {"maxLength": 3},
        {"enum": [{"a": 1}, 2**70, "a"]}, {"$ref": "#/$defs/again"}, {"format": "email"},
    ]
)  # fmt: skip


def both(inner: some.SearchStrategy[Any]) -> some.SearchStrategy[Any]:
    """Schemas with one keyword or several."""
    of_keys = some.dictionaries(KEYS, inner, max_size=3)
    return some.fixed_dictionaries(
        {},
        optional={
            "properties": of_keys, "additionalProperties": inner, "patternProperties": of_keys,
            "propertyNames": some.just({"maxLength": 3}), "items": inner, "prefixItems": some.lists(inner, max_size=3),
            "contains": inner, "allOf": some.lists(inner, min_size=1, max_size=3),
            "anyOf": some.lists(inner, min_size=1, max_size=3), "unevaluatedProperties": inner,
            "unevaluatedItems": inner, "uniqueItems": some.just(True), "multipleOf": some.just(3),
        },
    )  # fmt: skip


SCHEMAS = some.recursive(LEAVES, both, max_leaves=8)


@given(SCHEMAS, SCHEMAS, some.lists(DATA, min_size=1, max_size=3))
@settings(max_examples=examples(1_000), deadline=None)
def test_level_by_level_is_value_by_value(schema: Any, again: Any, payloads: list[Any]) -> None:
    document = {"$defs": {"again": {"properties": {"a": again}, "items": again}}, "allOf": [schema]}
    try:
        counter = at_once(counting(document))
    except TooMuch:
        return
    for data in payloads:
        cost = counter.count(data, most=NO_END)
        assert (cost.steps, cost.errors) == value_by_value(counter, data)
        if not any(map(is_long, inside(data))):
            assert counter.count(data, most=NO_END, has_long=False).steps == cost.steps


UNIQUE = {"uniqueItems": True, "items": {"uniqueItems": True}}
SMALL = {
    "lists": [[1, number] for number in range(25_000)],
    "empty lists": [[]] * 66_000,
    "numbers": list(range(36_000)),
    "texts": ["a"] * 50_000,
    "of all kinds": [1, "a", None, [], {}] * 15_000,
}


@pytest.mark.parametrize("name", SMALL)
def test_200_kb_of_small_values_are_counted_in_a_quarter_of_the_bound(name: str) -> None:
    data = json.dumps(SMALL[name], separators=(",", ":")).encode()
    assert len(data) < limits.EVENT_BODY_BYTES
    assert compile_schema(json.dumps(UNIQUE).encode()).mismatch(data) is None or name != "numbers"
    cost = at_once(counting(UNIQUE)).count(json.loads(data), has_long=False)
    assert cost.steps + cost.own < limits.SCHEMA_STEPS // 2


def test_what_counting_takes_itself_is_within_the_bound() -> None:
    """Objects in each of which hundreds of keys have schemas of their own, each a set for itself on each level."""
    leaves = {f"l{number}": {"maximum": number} for number in range(400)}
    tree = {"properties": {"deeper": {"$ref": "#"}} | leaves}
    data: dict[str, Any] = {}
    for _ in range(55):
        data = {"deeper": data} | dict.fromkeys(leaves, 1)
    counter = at_once(counting(tree))
    begun = time.process_time()
    cost = counter.count(data)
    assert time.process_time() - begun < 0.3
    assert counter.count(data, most=limits.SCHEMA_STEPS // 10).own < cost.own // 2
    assert cost.steps < limits.SCHEMA_STEPS < cost.steps + cost.own
    problem = compile_schema(json.dumps(tree).encode()).mismatch(json.dumps(data).encode())
    assert problem is not None and problem.code == "schema_too_costly"
