"""The OpenAPI 3.1 document, made from the table of calls and the shapes: nothing is described twice."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from surehook import __version__
from surehook.api import examples, problems
from surehook.api.codes import CODES, status_of
from surehook.api.json_object import JsonObject
from surehook.api.operations import Operation
from surehook.api.problems import ProblemShape
from surehook.api.query import Parameter
from surehook.api.table import OPERATIONS

REF = "#/components/schemas/"
EVERY_CALL = ("internal", "ledger_unavailable", "outcome_unknown")
EVERY_QUERY = ("unknown_parameter", "repeated_parameter", "bad_parameter", "bad_text")
EVERY_BODY = (
    "invalid_json", "body_too_large", "unsupported_encoding", "too_deep", "duplicate_key", "bad_text",
    "number_out_of_range", "missing_field", "unknown_field", "wrong_type", "out_of_range",
)  # fmt: skip
ABOUT = """Webhooks that surely arrive. Every call but `/healthz`, `/readyz`, `/docs`, `/problems/CODE`, this document and
receipts, which are signed, needs `Authorization: Bearer KEY`. Lists come newest first as
`{"data": […], "next": cursor or null}`. Errors are problem+json with a stable `code`, a sentence, the `field` and often
a `hint`. Unknown fields and parameters are refused. Instants are RFC 3339 UTC with milliseconds."""
_PATTERN = re.compile(r"\{(\w+)\}")


@cache
def document() -> JsonObject:
    return {
        "openapi": "3.1.0",
        "info": {"title": "surehook", "version": __version__, "description": ABOUT},
        "security": [{"key": []}],
        "tags": [{"name": tag} for tag in dict.fromkeys(_tag(call) for call in OPERATIONS)],
        "paths": _paths(),
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "signature": {"type": "apiKey", "in": "header", "name": "webhook-signature"},
            },
            "schemas": _schemas(),
        },
    }


@cache
def document_bytes() -> bytes:
    return msgspec.json.encode(document())


def codes(call: Operation) -> list[str]:
    """Every problem a call can answer with."""
    found = [*call.problems]
    if call.needs_key:
        found.append("unauthorized")
    if call.parameters or call.handle is not None:
        found += EVERY_QUERY
    if call.is_list:
        found.append("bad_cursor")
    if any(parameter.name in ("since", "until") for parameter in call.query):
        found.append("bad_time")
    if any(parameter.name == "endpoint" for parameter in call.query):
        found.append("bad_id")
    if any(parameter.name == "tenant" for parameter in call.query):
        found.append("unknown_tenant")
    if call.body is not None:
        found += EVERY_BODY
    return list(dict.fromkeys([*found, *EVERY_CALL]))


# -- paths --------------------------------------------------------------------------------------------------


def _paths() -> JsonObject:
    paths: JsonObject = {}
    for call in OPERATIONS:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call)
    return paths


def _operation(call: Operation) -> JsonObject:
    operation: JsonObject = {
        "operationId": call.name,
        "tags": [_tag(call)],
        "summary": call.about,
        "responses": {**_answers(call), **_refusals(call)},
    }
    if call.detail:
        operation["description"] = call.detail
    if call.signed:
        operation["security"] = [{"signature": []}]
    elif not call.needs_key:
        operation["security"] = []
    parameters = [_path_parameter(call, name) for name in _PATTERN.findall(call.path)]
    parameters += [_parameter(parameter) for parameter in call.parameters]
    parameters += examples.HEADER_PARAMETERS.get(call.name, [])
    if parameters:
        operation["parameters"] = parameters
    if call.body is not None:
        operation["requestBody"] = _body(call)
    return operation


def _body(call: Operation) -> JsonObject:
    assert call.body is not None
    schema: JsonObject = {"$ref": REF + _name(call.body)}
    if call.name == "publish_batch":
        schema = {"type": "array", "maxItems": 1000, "items": schema}
    media: JsonObject = {"schema": schema}
    if call.name in examples.BODIES:
        media["example"] = examples.BODIES[call.name]
    return {"required": not call.body_optional, "content": {"application/json": media}}


def _answers(call: Operation) -> JsonObject:
    answers: JsonObject = {}
    for status, shape in call.answers.items():
        if shape is None:
            answers[str(status)] = {"description": "Done."}
            continue
        if shape is bytes:
            answers[str(status)] = {
                "description": "Metrics.",
                "content": {"text/plain": {"schema": {"type": "string"}}},
            }
            continue
        schema: JsonObject = {"$ref": REF + _name(shape)}
        example = examples.SHAPES.get(_name(shape))
        if call.is_list:
            schema = _list_of(schema)
            example = {"data": [example], "next": None}
        if call.name == "publish_batch":
            schema = {"type": "array", "items": {"anyOf": [schema, {"$ref": REF + "Problem"}]}}
            example = [example, examples.REFUSED_EVENT]
        media = {"schema": schema} if example is None else {"schema": schema, "example": example}
        answers[str(status)] = {
            "description": "Accepted." if status == 202 else "Done.",
            "content": {"application/json": media},
        }
    return answers


def _list_of(schema: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {"data": {"type": "array", "items": schema}, "next": {"type": ["string", "null"]}},
        "required": ["data", "next"],
    }


def _refusals(call: Operation) -> JsonObject:
    by_status: dict[int, list[str]] = {}
    for code in codes(call):
        by_status.setdefault(status_of(code), []).append(code)
    return {str(status): _refusal(status, by_status[status]) for status in sorted(by_status)}


def _refusal(status: int, found: list[str]) -> JsonObject:
    return {
        "description": "; ".join(f"`{code}`: {CODES[code][1]}" for code in found),
        "content": {
            problems.MEDIA_TYPE: {
                "schema": {"$ref": REF + "Problem"},
                "examples": {code: {"value": _problem(code)} for code in found},
            }
        },
    }


def _problem(code: str) -> JsonObject:
    status, title = CODES[code]
    return {
        "type": problems.TYPE_PREFIX + code, "title": title, "status": status, "code": code,
        "detail": title + ".", "field": None, "hint": None,
    }  # fmt: skip


def _parameter(parameter: Parameter) -> JsonObject:
    return {"name": parameter.name, "in": "query", "description": parameter.about, "schema": parameter.schema}


def _path_parameter(call: Operation, name: str) -> JsonObject:
    return {
        "name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
        "example": examples.PATH.get(call.path.split("/")[2], "standard"),
    }  # fmt: skip


def _tag(call: Operation) -> str:
    parts = call.path.split("/")
    return parts[2] if parts[1] == "v1" else "health"


# -- schemas ------------------------------------------------------------------------------------------------


def _types() -> list[Any]:
    found: dict[Any, None] = {ProblemShape: None}
    for call in OPERATIONS:
        for kind in (call.body, *call.answers.values()):
            if kind is not None and kind is not bytes:
                found[kind] = None
    return list(found)


def _schemas() -> JsonObject:
    _, schemas = msgspec.json.schema_components(_types(), ref_template=REF + "{name}")
    renamed: JsonObject = _tidied(schemas)
    schemas = {name.removesuffix("Shape"): schema for name, schema in renamed.items()}
    assert len(schemas) == len(renamed), "what is sent and what is answered have one name"
    for name, example in examples.SHAPES.items():
        if name in schemas:
            schemas[name]["examples"] = [example]
    return dict(sorted(schemas.items()))


def _tidied(value: Any) -> Any:
    """Names without `Shape`, and patterns as JavaScript writes them."""
    if isinstance(value, dict):
        return {key: _tidied(each) if key != "title" else _bare(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_tidied(each) for each in value]
    if isinstance(value, str) and value.startswith(REF):
        return value.removesuffix("Shape")
    if isinstance(value, str) and value.startswith(r"\A"):
        return "^" + value[2:].removesuffix(r"\Z") + "$"
    return value


def _bare(title: object) -> object:
    return title.removesuffix("Shape") if isinstance(title, str) else _tidied(title)


def _name(kind: Any) -> str:
    name: str = kind.__name__
    return name.removesuffix("Shape")
