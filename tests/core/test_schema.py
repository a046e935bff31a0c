"""Schemas of event types: judged when they are registered, asked of every event, and never a way out."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import limits
from surehook.core.errors import Problem
from surehook.core.schema import FIELD_CHARS, SENTENCE_CHARS, compile_schema, count_patterns, kept_in_steps
from surehook.core.steps import at_once

SIGNED = {
    "type": "object",
    "required": ["document"],
    "properties": {
        "document": {"type": "string", "pattern": "^doc_"},
        "signer": {"type": "object", "required": ["email"], "properties": {"email": {"format": "email"}}},
        "pages": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        "state": {"enum": ["open", "done"]},
    },
    "additionalProperties": False,
}


def refused(schema: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        compile_schema(schema if isinstance(schema, bytes) else json.dumps(schema).encode())
    problem = caught.value
    assert (problem.code, problem.field, problem.status) == ("invalid_schema", "schema", 422)
    return problem


def said(schema: Any, data: Any) -> Problem | None:
    return compile_schema(json.dumps(schema).encode()).mismatch(json.dumps(data).encode())


# -- events -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"document": "doc_1"}, None),
        ({"document": "doc_1", "signer": {"email": "ada@example.org"}, "pages": [1, 2.0, 10**300]}, None),
        ({}, "data.document"),
        ([], "data"),
        ({"document": 1}, "data.document"),
        ({"document": "1"}, "data.document"),
        ({"document": "doc_1", "signer": {}}, "data.signer.email"),
        ({"document": "doc_1", "signer": {"email": "ada"}}, "data.signer.email"),
        ({"document": "doc_1", "pages": [1, 0]}, "data.pages.1"),
        ({"document": "doc_1", "pages": [1, 1.5]}, "data.pages.1"),
        ({"document": "doc_1", "state": "lost"}, "data.state"),
        ({"document": "doc_1", "color": "red"}, "data.color"),
    ],
)
def test_a_mismatch_names_the_path_of_the_first_error(data: Any, field: str | None) -> None:
    problem = said(SIGNED, data)

    assert (problem and problem.field) == field
    assert problem is None or (problem.code, problem.status) == ("schema_mismatch", 422)


@pytest.mark.parametrize(
    ("schema", "data", "detail"),
    [
        ({"type": "string"}, 5, 'the value is not of type "string"'),
        ({"required": ["a"]}, {}, '"a" is a required property'),
        ({"enum": ["a", "b"]}, "secret", 'the value is not one of "a" or "b"'),
        ({"pattern": "^a"}, "secret", 'the value does not match "^a"'),
        ({"propertyNames": {"maxLength": 2}}, {"secret": 1}, "a key has a name that the schema does not allow"),
        ({"properties": {"a": False}}, {"a": "secret"}, "the schema allows nothing here"),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"secret": 1}, "the schema has no such property, and allows no other"),
        ({"unevaluatedProperties": False}, {"secret": 1}, "the schema has no such property, and allows no other"),
        ({"contains": {"type": "string"}, "maxContains": 1}, ["secret", "b"], "not as many items as the schema asks for are as it asks"),
    ],
)  # fmt: skip
def test_the_sentence_quotes_the_schema_and_not_the_payload(schema: Any, data: Any, detail: str) -> None:
    problem = said(schema, data)

    assert problem is not None and problem.detail == detail


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"not": {}},
        {"type": "integer"},
        {"enum": [1]},
        {"const": 1},
        {"pattern": "^$"},
        {"maxLength": 1},
        {"maxItems": 1},
        {"uniqueItems": True},
        {"items": {"type": "integer"}},
        {"contains": {"type": "integer"}},
        {"anyOf": [{"type": "integer"}, {"enum": [2]}]},
        {"oneOf": [{}, {}]},
        {"propertyNames": {"maxLength": 1}},
        {"additionalProperties": False},
        {"properties": {"a": {}}, "additionalProperties": False},
        {"unevaluatedProperties": False},
        {"unevaluatedItems": False},
        {"patternProperties": {".": {"type": "integer"}}},
        {"additionalProperties": {"type": "integer"}},
        {"format": "date-time"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "contentMediaType": "application/json"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "items": [{}], "additionalItems": False},
    ],
)
@pytest.mark.parametrize("shape", ["text", "list", "key", "nested"])
def test_no_answer_holds_more_of_the_payload_than_a_short_path(schema: Any, shape: str) -> None:
    secret = "s3cret-" * 40
    shapes = {
        "text": secret,
        "list": [secret, secret],
        "key": {secret: secret},
        "nested": {"k" * 60: {secret: [secret]}},
    }
    problem = said(schema, shapes[shape])

    if problem is not None:
        assert "s3cret" not in problem.detail
        assert problem.field is not None and len(problem.field) <= FIELD_CHARS
        assert problem.hint is None


def test_a_sentence_is_cut_where_the_schema_is_long() -> None:
    problem = said({"enum": ["x" * 10_000]}, "y")

    assert problem is not None and len(problem.detail) == SENTENCE_CHARS


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text(st.characters(exclude_categories=["Cs"]))
    , lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3), max_leaves=8))  # fmt: skip
def test_the_empty_schema_takes_every_json_and_its_negation_none(value: Any) -> None:
    data = json.dumps(value).encode()

    assert compile_schema(b"{}").mismatch(data) is None
    assert compile_schema(b'{"not":{}}').mismatch(data) is not None


def test_unknown_formats_are_notes_and_known_ones_are_checked_in_every_draft() -> None:
    assert said({"format": "int32"}, "x") is None
    for draft in ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"):
        assert said({"$schema": draft, "format": "email"}, "x") is not None


def test_the_draft_is_2020_12_unless_the_schema_names_another() -> None:
    tuples = {"items": [{"type": "string"}]}

    assert "items" in refused(tuples).detail
    assert said({"$schema": "http://json-schema.org/draft-07/schema#", **tuples}, [1]) is not None
    assert said({"prefixItems": [{"type": "string"}]}, [1]) is not None


# -- schemas ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "text"}, "at 'type'"),
        ({"properties": {"a": {"maxLength": -1}}}, "at 'properties/a/maxLength'"),
        ({"required": "a"}, "at 'required'"),
        ({"pattern": "("}, "linear time"),
        ({"$ref": "#/$defs/nowhere"}, "/$defs/nowhere"),
        ({"$ref": "#nowhere"}, "nowhere"),
        ({"$schema": "https://example.com/mine"}, "meta-schema"),
        (b"[]", "not of type"),
        (b"5", "not of type"),
        (b"{", "invalid_json"),
        (b'{"minimum":1e999}', "number_out_of_range"),
        (b'{"not":' * 70 + b"{}" + b"}" * 70, "too_deep"),
    ],
)
def test_what_is_no_schema_is_refused_with_the_place(schema: Any, word: str) -> None:
    assert word in refused(schema).detail


def test_a_refusal_is_short_however_long_the_schema() -> None:
    for schema in (
        {"$ref": "#/" + "x" * 10_000},
        {"x" * 10_000: 1, "enum": "y"},
        {"properties": {"x" * 10_000: 5}},
    ):
        assert len(refused(schema).detail) < 400


# Says its port, then a word for each caller. Its own process: the engine may hold the interpreter while it fetches.
LISTENER = """
import socket
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    server.accept()[0].close()
    print("fetched", flush=True)
"""


@pytest.mark.parametrize(
    "form",
    ["http://{host}/a", "https://{host}/a", "//{host}/a", "file://{file}", "{file}", "other.json", "urn:a:b"],
)
def test_a_reference_outside_the_document_is_refused_and_never_fetched(form: str, tmp_path: Path) -> None:
    """The file is there and the port listens: a schema that were fetched would be found, or the call noticed."""
    there = tmp_path / "there.json"
    there.write_text("{}")
    with subprocess.Popen([sys.executable, "-c", LISTENER], stdout=subprocess.PIPE, text=True) as listener:
        try:
            assert listener.stdout is not None
            outside = form.format(host=f"127.0.0.1:{listener.stdout.readline().strip()}", file=there)
            for schema in (
                {"$ref": outside},
                {"properties": {"a": {"items": {"$ref": outside}}}},
                {"properties": {"a": {"$dynamicRef": outside}}},
                {"$schema": outside},
                {"$ref": "#/elsewhere", "elsewhere": {"$ref": outside}},
                {
                    "$schema": "http://json-schema.org/draft-07/schema#",
                    "dependencies": {"a": {"$ref": outside}},
                },
            ):
                refused(schema)
        finally:
            listener.kill()
        assert listener.stdout.read() == ""


def test_a_base_of_its_own_does_not_lead_outside() -> None:
    inside = {"$id": "https://example.com/a", "$ref": "#/$defs/b", "$defs": {"b": {"type": "string"}}}

    assert said(inside, 5) is not None
    refused({"$id": "https://example.com/a", "$ref": "b"})
    assert "nothing is fetched" in (refused({"$ref": "https://example.com/a"}).hint or "")


def test_a_schema_may_refer_to_itself() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}}

    assert said(tree, {"next": {"next": {}}}) is None
    problem = said(tree, {"next": {"next": 5}})
    assert problem is not None and problem.field == "data.next.next"


def test_a_schema_that_applies_itself_to_the_same_value_is_refused() -> None:
    for loop in (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        {"allOf": [{"$ref": "#"}]},
        {"$dynamicAnchor": "x", "not": {"$dynamicRef": "#x"}},
    ):
        assert "back to itself" in refused(loop).detail


# -- patterns ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*$", "(a|aa)+$", "(.*a){20}$", "([a-z]+)*1"])
def test_a_pattern_that_would_backtrack_for_ever_takes_linear_time(pattern: str) -> None:
    schema = compile_schema(json.dumps({"pattern": f"^{pattern}"}).encode())
    began = time.process_time()
    schema.mismatch(json.dumps("a" * 50_000 + "!").encode())

    assert time.process_time() - began < 2, "a backtracking engine would not end"


@pytest.mark.parametrize("pattern", ["(?=a)b", "(?!a)b", "(?<=a)b", r"(a)\1", "a{1000}{1000}{10}"])
@pytest.mark.parametrize("where", ["pattern", "patternProperties"])
def test_a_pattern_that_is_not_linear_or_not_small_is_refused(pattern: str, where: str) -> None:
    problem = refused({"properties": {"a": {where: pattern if where == "pattern" else {pattern: {}}}}})

    assert "linear time" in problem.detail
    assert "look-around" in (problem.hint or "")


@pytest.mark.parametrize(
    "pattern", [r"^\w{1,255}$", r"^[A-Za-z0-9_.-]{1,1000}$", r"^\p{L}+$", r"^\d{4}-\d\d-\d\d$", r"^\/a\/"]
)
def test_patterns_of_real_schemas_fit(pattern: str) -> None:
    compile_schema(json.dumps({"pattern": pattern}).encode())


def test_the_number_of_patterns_is_bounded() -> None:
    def with_patterns(count: int) -> dict[str, Any]:
        return {
            "properties": {f"p{n}": {"pattern": f"^{n}$"} for n in range(count // 2)},
            "patternProperties": {f"^{n}$": {} for n in range(count - count // 2)},
        }

    compile_schema(json.dumps(with_patterns(limits.SCHEMA_PATTERNS)).encode())
    assert "patterns" in refused(with_patterns(limits.SCHEMA_PATTERNS + 1)).detail


def test_patterns_are_counted_wherever_they_stand() -> None:
    named_so = {"properties": {"pattern": {"type": "string"}}}

    assert count_patterns(named_so) == 0
    assert (
        count_patterns({"allOf": [{"not": {"pattern": "a"}}, {"patternProperties": {"a": {"pattern": "b"}}}]})
        == 3
    )


# -- kept schemas -----------------------------------------------------------------------------------------


def test_a_kept_schema_that_is_not_usable_refuses_every_event() -> None:
    kept = at_once(kept_in_steps(b'{"type":"text"}'))
    problem = kept.mismatch(b"{}")

    assert kept.source == b'{"type":"text"}'
    assert problem is not None and (problem.code, problem.field) == ("invalid_schema", "type")
    assert at_once(kept_in_steps(b'{"type":"object"}')).mismatch(b"{}") is None


def test_the_engine_is_not_imported_before_the_first_schema() -> None:
    code = "import sys, surehook.delivery.engine; sys.exit('jsonschema_rs' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
