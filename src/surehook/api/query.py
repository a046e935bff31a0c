"""Query parameters: declared, typed, and refused when unknown, repeated or unusable.

Ignoring a misspelt filter would return other rows than were asked for, so nothing is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from surehook.api.bodies import did_you_mean
from surehook.core import ids, instants, limits, subscription
from surehook.core.errors import Problem
from surehook.core.json_value import JsonObject

QUERY_BYTES = 8 * 1024  # more than all filters together at their longest
LIMIT_MAX = 200
LIMIT_DEFAULT = 50


class Parameter(Struct, frozen=True):
    """One query parameter: the reader of its text (`read` raises Problem), and its JSON Schema."""

    name: str
    about: str
    read: Callable[[str], object]
    schema: JsonObject


def parse(query: bytes, known: tuple[Parameter, ...]) -> tuple[JsonObject, dict[str, str]]:
    """The values by name, and the texts they came from. Raises Problem with the parameter as `field`."""
    texts = _texts(query, [parameter.name for parameter in known])
    values = {
        parameter.name: parameter.read(texts[parameter.name])
        for parameter in known
        if parameter.name in texts
    }
    return values, texts


def _texts(query: bytes, known: list[str]) -> dict[str, str]:
    if len(query) > QUERY_BYTES:
        raise Problem("bad_parameter", f"the query is longer than {QUERY_BYTES:,} bytes")
    texts: dict[str, str] = {}
    for part in query.split(b"&"):
        if not part:
            continue
        raw_name, _, raw = part.partition(b"=")
        name = _decoded(raw_name, None)
        if name not in known:
            hint = did_you_mean(name, known) if known else "this call has no query parameters"
            raise Problem("unknown_parameter", "there is no such query parameter", field=name[:64], hint=hint)
        if name in texts:
            raise Problem("repeated_parameter", f"{name} is given twice", field=name)
        texts[name] = _decoded(raw, name)
    return texts


def _decoded(raw: bytes, field: str | None) -> str:
    try:
        text = unquote_to_bytes(raw.replace(b"+", b" ")).decode("utf-8")
    except UnicodeDecodeError:
        raise Problem("bad_text", "the query is not UTF-8", field=field) from None
    if "\0" in text:
        raise Problem("bad_text", "text holds U+0000", field=field)
    return text


# -- kinds of parameters ------------------------------------------------------------------------------------


def text(name: str, about: str, *, chars: int = limits.TEXT_CHARS) -> Parameter:
    def read(written: str) -> str:
        if not 1 <= len(written) <= chars:
            raise Problem("bad_parameter", f"{name} has 1 to {chars} characters", field=name)
        return written

    return Parameter(name, about, read, {"type": "string", "minLength": 1, "maxLength": chars})


def tenant() -> Parameter:
    return text("tenant", "Id of a tenant.", chars=limits.TENANT_CHARS)


def event_type() -> Parameter:
    def read(written: str) -> str:
        subscription.check_event_type(written, field="type")
        return written

    schema = {"type": "string", "minLength": 1, "maxLength": limits.EVENT_TYPE_CHARS}
    return Parameter("type", "Event type, exactly.", read, schema)


def an_id(name: str, prefix: str, about: str) -> Parameter:
    def read(written: str) -> bytes:
        raw = ids.try_parse(prefix, written)
        if raw is None:
            other = ids.other_kind(prefix, written)
            raise Problem("bad_id", other or f"not an id of the form {prefix}_…", field=name)
        return raw

    schema = {"type": "string", "pattern": f"^{prefix}_[{ids.ALPHABET}]{{{ids.TEXT_CHARS}}}$"}
    return Parameter(name, about, read, schema)


def one_of(name: str, words: tuple[str, ...], about: str) -> Parameter:
    def read(written: str) -> str:
        if written not in words:
            raise Problem(
                "bad_parameter",
                f"{name} has no such value",
                field=name,
                hint=did_you_mean(written, list(words)),
            )
        return written

    return Parameter(name, about, read, {"type": "string", "enum": list(words)})


def http_status(name: str, about: str) -> Parameter:
    def read(written: str) -> int:
        if not (written.isascii() and written.isdigit() and len(written) == 3 and 100 <= int(written) <= 599):
            raise Problem("bad_parameter", f"{name} is a status of HTTP, from 100 to 599", field=name)
        return int(written)

    return Parameter(name, about, read, {"type": "integer", "minimum": 100, "maximum": 599})


def instant(name: str, about: str) -> Parameter:
    def read(written: str) -> int:
        try:
            return instants.parse(written, field=name)
        except Problem as problem:
            if " " in written:  # a plus sign that was not escaped
                problem.hint = "write + as %2B, or use Z"
            raise

    return Parameter(name, about, read, {"type": "string", "format": "date-time"})


def _read_limit(written: str) -> int:
    if not (written.isascii() and written.isdigit() and len(written) <= 3 and 1 <= int(written) <= LIMIT_MAX):
        raise Problem("bad_parameter", f"limit is a whole number from 1 to {LIMIT_MAX}", field="limit")
    return int(written)


LIMIT = Parameter(
    "limit", "How many at most.", _read_limit,
    {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
)  # fmt: skip
CURSOR = Parameter(
    "cursor", "`next` of the page before, with the same filters.", lambda written: written, {"type": "string"}
)
PAGED = (LIMIT, CURSOR)


def filters(texts: Mapping[str, str]) -> dict[str, str]:
    """The parameters that select rows, not their number: a cursor is bound to these."""
    return {name: value for name, value in texts.items() if name not in ("limit", "cursor")}
