"""/docs and /problems/CODE: the OpenAPI document as plain pages.

No script, no style sheet and no font from elsewhere: the pages work on a machine without a network, and a
browser is told to load nothing (`Content-Security-Policy`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from html import escape

from surehook.api import openapi, problems
from surehook.api.codes import CODES
from surehook.api.table import OPERATIONS
from surehook.core.json_value import JsonObject

HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
FIELDS_DEPTH = 2  # objects inside objects whose fields are listed
STYLE = """
:root{color-scheme:light dark;--line:#8884;--soft:#8881}
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
code,pre{font:14px/1.45 ui-monospace,monospace}pre{background:var(--soft);padding:.75rem;overflow:auto;border-radius:6px}
h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}details{border:1px solid var(--line);border-radius:6px;margin:.5rem 0}
summary{padding:.5rem .75rem;cursor:pointer}details>div{padding:0 .75rem .75rem}
.method{display:inline-block;min-width:4.5rem;font-weight:600}table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--line)}
nav a{margin-right:.75rem}
"""


@cache
def docs() -> str:
    """The whole reference on one page, by tag."""
    document = openapi.document()
    tags = [tag["name"] for tag in document["tags"]]
    sections = "".join(_section(tag, document) for tag in tags)
    links = "".join(f'<a href="#{escape(tag)}">{escape(tag)}</a>' for tag in [*tags, "problems"])
    about = "".join(f"<p>{_code(part)}</p>" for part in document["info"]["description"].split("\n\n"))
    return _page("surehook API", f"<h1>surehook API {escape(document['info']['version'])}</h1>{about}"
                 f'<p><a href="/openapi.json">openapi.json</a></p><nav>{links}</nav>{sections}{_problems()}')  # fmt: skip


@cache
def problem(code: str) -> str:
    """The page of one code: its meaning, and the calls that answer with it."""
    status, title = CODES[code]
    calls = [
        f"<li><code>{operation.method} {escape(operation.path)}</code></li>"
        for operation in OPERATIONS
        if code in openapi.codes(operation)
    ]
    where = (
        f"<p>Answered by:</p><ul>{''.join(calls)}</ul>" if calls else "<p>Answered whatever is called.</p>"
    )
    return _page(
        code,
        f'<h1><code>{code}</code></h1><p>{escape(title)}. Status {status}.</p>{where}<p><a href="/docs">All calls</a></p>',
    )


def _section(tag: str, document: JsonObject) -> str:
    calls = [
        _operation(method, path, operation, document)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if tag in operation["tags"]
    ]
    return f'<h2 id="{escape(tag)}">{escape(tag)}</h2>{"".join(calls)}'


def _operation(method: str, path: str, operation: JsonObject, document: JsonObject) -> str:
    parts = [f"<p>{_code(operation['description'])}</p>"] if "description" in operation else []
    if "security" in operation:
        parts.append("<p>No key is needed.</p>")
    if "parameters" in operation:
        parts.append(_parameters(operation["parameters"]))
    if "requestBody" in operation:
        media = operation["requestBody"]["content"]["application/json"]
        parts.append("<p>Body:</p>" + _fields(media["schema"], document) + _json(media.get("example", {})))
    for status, answer in operation["responses"].items():
        for media_type, media in answer.get("content", {}).items():
            if media_type != problems.MEDIA_TYPE and "example" in media:
                parts.append(f"<p>{status}:</p>" + _json(media["example"]))
        if status.startswith(("4", "5")):
            parts.append(f"<p>{status}: {_code(answer['description'])}</p>")
    return (
        f'<details id="{operation["operationId"]}"><summary><span class="method">{method.upper()}</span>'
        f"<code>{escape(path)}</code> – {_code(operation['summary'])}</summary><div>{''.join(parts)}</div></details>"
    )


def _parameters(parameters: list[JsonObject]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{_code(each.get('description', ''))}</td><td><code>{escape(_short(each['schema']))}</code></td></tr>"
        for each in parameters
    )
    return f"<table><tr><th>parameter</th><th>in</th><th>meaning</th><th>values</th></tr>{rows}</table>"


def _fields(schema: JsonObject, document: JsonObject, prefix: str = "") -> str:
    """A table of the fields of a body, those of objects inside it with their path."""
    rows = "".join(_field_rows(schema, document, prefix))
    return (
        f"<table><tr><th>field</th><th></th><th>meaning</th><th>values</th></tr>{rows}</table>"
        if rows
        else ""
    )


def _field_rows(schema: JsonObject, document: JsonObject, prefix: str) -> Iterator[str]:
    schema = _resolved(schema.get("items", schema), document)
    required = schema.get("required", ())
    for name, field in schema.get("properties", {}).items():
        need = "required" if name in required else "optional"
        inner = list(_kinds(field, document))
        about = field.get("description") or next(
            (each["description"] for each in inner if _is_said(each)), ""
        )
        values = " or ".join(dict.fromkeys(filter(None, map(_short, inner))))
        yield (
            f"<tr><td><code>{escape(prefix + name)}</code></td><td>{need}</td><td>{_code(about)}</td>"
            f"<td><code>{escape(values)}</code></td></tr>"
        )
        for each in inner:
            if prefix.count(".") < FIELDS_DEPTH:
                yield from _field_rows(each, document, f"{prefix}{name}.") if "properties" in each else ()


def _kinds(schema: JsonObject, document: JsonObject) -> Iterator[JsonObject]:
    """A schema, or its alternatives."""
    schema = _resolved(schema, document)
    for each in schema.get("anyOf", ()):
        yield from _kinds(each, document)
    if "anyOf" not in schema:
        yield schema


def _is_said(schema: JsonObject) -> bool:
    return "description" in schema and "properties" not in schema


def _resolved(schema: JsonObject, document: JsonObject) -> JsonObject:
    """A schema, or the one it refers to."""
    name = schema.get("$ref", "").removeprefix(openapi.REF)
    found: JsonObject = document["components"]["schemas"][name] if name else schema
    return found


def _problems() -> str:
    rows = "".join(
        f'<tr><td><a href="/problems/{code}"><code>{code}</code></a></td><td>{status}</td><td>{escape(title)}</td></tr>'
        for code, (status, title) in sorted(CODES.items())
    )
    return f'<h2 id="problems">problems</h2><table><tr><th>code</th><th>status</th><th>meaning</th></tr>{rows}</table>'


def _short(schema: JsonObject) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = schema.get("type", "")
    words = [" or ".join(kind) if isinstance(kind, list) else str(kind), str(schema.get("format", ""))]
    words += [
        f"{name} {schema[name]}" for name in ("minimum", "maximum", "default", "maxLength") if name in schema
    ]
    return " ".join(word for word in words if word)


def _json(value: object) -> str:
    return f"<pre>{escape(json.dumps(value, indent=2, ensure_ascii=False))}</pre>"


def _code(text: str) -> str:
    """Text with `backquoted` parts as code."""
    parts = escape(text).split("`")
    return "".join(f"<code>{part}</code>" if place % 2 else part for place, part in enumerate(parts))


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>{body}</body></html>'
    )
