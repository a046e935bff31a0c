"""The OpenAPI 3.1 document, made from the table of calls and the structs of bodies and answers: nothing is described twice."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from surehook import __version__
from surehook.api import examples, problems
from surehook.api.codes import CODES, status_of
from surehook.api.operations import Operation
from surehook.api.problems import ProblemOut
from surehook.api.query import Parameter
from surehook.api.table import OPERATIONS
from surehook.core.json_value import JsonObject

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
        "tags": [{"name": tag} for tag in dict.fromkeys(_tag(operation) for operation in OPERATIONS)],
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


def codes(operation: Operation) -> list[str]:
    """Every problem a call can answer with."""
    found = [*operation.problems]
    if operation.needs_key:
        found.append("unauthorized")
    if operation.parameters or operation.handle is not None:
        found += EVERY_QUERY
    if operation.is_list:
        found.append("bad_cursor")
    if operation.lists_rows:
        found += ["overloaded", "tenant_overloaded"]
    if any(parameter.name in ("since", "until") for parameter in operation.query):
        found.append("bad_time")
    if any(parameter.name == "endpoint" for parameter in operation.query):
        found.append("bad_id")
    if any(parameter.name == "tenant" for parameter in operation.query):
        found.append("unknown_tenant")
    if operation.body is not None:
        found += EVERY_BODY
    return list(dict.fromkeys([*found, *EVERY_CALL]))


# -- paths --------------------------------------------------------------------------------------------------


def _paths() -> JsonObject:
    paths: JsonObject = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return paths


def _operation(operation: Operation) -> JsonObject:
    described: JsonObject = {
        "operationId": operation.name,
        "tags": [_tag(operation)],
        "summary": operation.about,
        "responses": {**_answers(operation), **_refusals(operation)},
    }
    if operation.detail:
        described["description"] = operation.detail
    if operation.signed:
        described["security"] = [{"signature": []}]
    elif not operation.needs_key:
        described["security"] = []
    parameters = [_path_parameter(operation, name) for name in _PATTERN.findall(operation.path)]
    parameters += [_parameter(parameter) for parameter in operation.parameters]
    parameters += examples.HEADER_PARAMETERS.get(operation.name, [])
    if parameters:
        described["parameters"] = parameters
    if operation.body is not None:
        described["requestBody"] = _body(operation)
    return described


def _body(operation: Operation) -> JsonObject:
    assert operation.body is not None
    schema: JsonObject = {"$ref": REF + _name(operation.body)}
    if operation.name == "publish_batch":
        schema = {"type": "array", "maxItems": 1000, "items": schema}
    media: JsonObject = {"schema": schema}
    if operation.name in examples.BODIES:
        media["example"] = examples.BODIES[operation.name]
    return {"required": not operation.body_optional, "content": {"application/json": media}}


def _answers(operation: Operation) -> JsonObject:
    answers: JsonObject = {}
    for status, shape in operation.answers.items():
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
        example = examples.ANSWERS.get(_name(shape))
        if operation.is_list:
            schema = _list_of(schema)
            example = {"data": [example], "next": None}
        if operation.name == "publish_batch":
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


def _refusals(operation: Operation) -> JsonObject:
    by_status: dict[int, list[str]] = {}
    for code in codes(operation):
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


def _path_parameter(operation: Operation, name: str) -> JsonObject:
    return {
        "name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
        "example": examples.PATH.get(operation.path.split("/")[2], "standard"),
    }  # fmt: skip


def _tag(operation: Operation) -> str:
    parts = operation.path.split("/")
    return parts[2] if parts[1] == "v1" else "health"


# -- schemas ------------------------------------------------------------------------------------------------


def _types() -> list[object]:
    found: dict[object, None] = {ProblemOut: None}
    for operation in OPERATIONS:
        for kind in (operation.body, *operation.answers.values()):
            if kind is not None and kind is not bytes:
                found[kind] = None
    return list(found)


def _schemas() -> JsonObject:
    _, schemas = msgspec.json.schema_components(_types(), ref_template=REF + "{name}")
    renamed: JsonObject = _tidied(schemas)
    schemas = {name.removesuffix("Out"): schema for name, schema in renamed.items()}
    assert len(schemas) == len(renamed), "what is sent and what is answered have one name"
    for name, example in examples.ANSWERS.items():
        if name in schemas:
            schemas[name]["examples"] = [example]
    return dict(sorted(schemas.items()))


def _tidied(value: object) -> Any:
    """Names without `Out`, and patterns as JavaScript writes them."""
    if isinstance(value, dict):
        return {key: _tidied(each) if key != "title" else _bare(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_tidied(each) for each in value]
    if isinstance(value, str) and value.startswith(REF):
        return value.removesuffix("Out")
    if isinstance(value, str) and value.startswith(r"\A"):
        return "^" + value[2:].removesuffix(r"\Z") + "$"
    return value


def _bare(title: object) -> object:
    return title.removesuffix("Out") if isinstance(title, str) else _tidied(title)


def _name(kind: Any) -> str:
    name: str = kind.__name__
    return name.removesuffix("Out")
