"""Bodies of management calls: bounded, strict, and refused with the field that is at fault.

Values are never coerced: `"1"` is not a number, `true` is not 1, an unknown field is not dropped. The content
type is ignored, since a foreign page cannot send the key in `Authorization`; a compressed body is refused (415),
because its size could not be bounded before it is unpacked.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct
from starlette.requests import Request

from surehook.core import json_text, limits
from surehook.core.errors import Problem
from surehook.core.json_value import JsonObject
from surehook.core.steps import Steps

B = TypeVar("B", bound=Struct)
# Up to so many bytes a body is read and converted in one step, of two milliseconds at most. In two steps its lists and objects
# would wait in between, and with dozens of waiting bodies the garbage collector walks theirs for 10 to 60 ms.
WHOLE_BYTES = limits.MANAGEMENT_BODY_BYTES
DECODED = 8  # cost of reading a body once more, so strictly, in times its bytes (core/steps.py)


async def read(request: Request, *, limit: int) -> bytes:
    """The body, at most `limit` bytes. Raises Problem `body_too_large`, at once where the length is announced."""
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise Problem("unsupported_encoding", "the body is compressed", hint="send it as it is", status=415)
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and int(announced[:20]) > limit:
        raise _too_large(limit)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        parts.append(part)
    return b"".join(parts)


def decode(data: bytes, body: type[B], *, empty: bool = False) -> Steps[B]:
    """Decode a body in steps. `empty`: no body at all means `{}`. Raises Problem with the field at fault."""
    if not data.strip():
        if not empty:
            raise Problem("invalid_json", "the body is empty", hint="send a JSON object", status=400)
        data = b"{}"
    flaw = yield from json_text.flaw_in_steps(data, depth=limits.DATA_DEPTH, digits=limits.NUMBER_DIGITS)
    if flaw is not None:
        raise _flawed(flaw, data)
    yield len(data) * DECODED
    # Only this reader sees every pair of an object, so only it can see a key that is given twice.
    value = json.loads(data, object_pairs_hook=_once)
    if not isinstance(value, dict):
        raise Problem("wrong_type", "the body is not a JSON object", hint="send a JSON object")
    if len(data) > WHOLE_BYTES:
        yield len(data) * DECODED
    try:
        return msgspec.convert(value, body)
    except msgspec.ValidationError as error:
        raise _refused(error, body, value) from None


def given(body: Struct) -> JsonObject:
    """The fields of a change that were written, `null` included."""
    return {name: value for name, value in msgspec.structs.asdict(body).items() if value is not msgspec.UNSET}


def stored(value: object) -> bytes | None:
    """A JSON value as the ledger keeps it; None is absent."""
    return None if value is None else msgspec.json.encode(value)


def _once(pairs: list[tuple[str, object]]) -> JsonObject:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Problem("duplicate_key", f"the key {json_text.quoted(twice)} is given twice", field=twice[:200])
    return found


def _flawed(flaw: str, data: bytes) -> Problem:
    if flaw == "too_deep":
        return Problem(flaw, f"nested more than {limits.DATA_DEPTH} deep")
    if flaw == "bad_text":
        return Problem(flaw, "text holds U+0000, which cannot be stored everywhere")
    if flaw == "number_out_of_range":
        return Problem(flaw, "a number is too large for a double")
    try:
        json.loads(data.decode(), parse_constant=_constant)
    except _Constant as error:
        # Widely used, though not JSON: the value is at fault rather than the syntax.
        return Problem("number_out_of_range", f"{error} is not a number in JSON", hint="use null")
    except (ValueError, RecursionError):
        return Problem("invalid_json", "the body is not JSON (RFC 8259)", status=400)
    # Python's reader accepts half of a surrogate pair, which is not text.
    return Problem("bad_text", "text holds half of a surrogate pair")


class _Constant(Exception):
    """NaN or an infinity was met."""


def _constant(word: str) -> object:
    raise _Constant(word)


def _too_large(limit: int) -> Problem:
    return Problem("body_too_large", f"the body is larger than {limit:,} bytes", status=413)


def _refused(error: msgspec.ValidationError, body: type[Struct], value: JsonObject) -> Problem:
    fault = json_text.fault(error)
    hint = _did_you_mean(fault.path, body) if fault.code == "unknown_field" else _choices(fault.path, body)
    path = fault.path
    if "[...]" in str(error) and isinstance(value.get(path), dict):
        # The decoder names the object but not the key; all objects with free keys hold texts.
        path += "." + next((key for key, each in value[path].items() if not isinstance(each, str)), "")[:64]
    detail = fault.detail
    if "matching regex" in detail:
        detail = _in_words(path, body) or detail
    return Problem(fault.code, detail, field=path or None, hint=hint)


def _in_words(path: str, body: type[Struct]) -> str | None:
    """The requirement on a text at this path, from its description; None if it has none."""
    for field in msgspec.structs.fields(body):
        if field.encode_name == path:
            meant = msgspec.inspect.type_info(field.type)
            kinds = meant.types if isinstance(meant, msgspec.inspect.UnionType) else (meant,)
            for kind in kinds:
                if isinstance(kind, msgspec.inspect.Metadata) and kind.extra_json_schema:
                    words = kind.extra_json_schema.get("description")
                    return f"expected {words[:1].lower()}{words[1:].rstrip('.')}" if words else None
    return None


def _did_you_mean(path: str, body: type[Struct]) -> str:
    known = _fields_at(path.split(".")[:-1], body)
    return did_you_mean(path.rsplit(".", 1)[-1], known)


def did_you_mean(word: str, known: list[str]) -> str:
    """A hint: the nearest known word, or all of them."""
    near = difflib.get_close_matches(word[:64].lower(), known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else "known: " + ", ".join(known)


def _choices(path: str, body: type[Struct]) -> str | None:
    """A hint: the values of the closed list at this path; None if there is none."""
    *above, last = path.split(".")
    found: list[str] = []
    for here in _structs_at(above, body):
        if here.__struct_config__.tag_field == last:
            found.append(str(here.__struct_config__.tag))
        for field in msgspec.structs.fields(here):
            if field.encode_name == last:
                found += [
                    str(value)
                    for kind in _kinds(field.type)
                    if get_origin(kind) is Literal
                    for value in get_args(kind)
                ]
    return "one of: " + ", ".join(found) if found else None


def _fields_at(path: list[str], body: type[Struct]) -> list[str]:
    """Field names of the object at a path inside a body; those of the body itself if there is no object."""
    here = _structs_at(path, body) or [body]
    return list(dict.fromkeys(field.encode_name for one in here for field in msgspec.structs.fields(one)))


def _structs_at(path: list[str], body: type[Struct]) -> list[type[Struct]]:
    """The object types possible at a path inside a body; none if the path leads to something else."""
    here: list[type[Struct]] = [body]
    for step in path:
        types = [field.type for one in here for field in msgspec.structs.fields(one) if field.name == step]
        here = [
            kind
            for each in types
            for kind in _kinds(each)
            if isinstance(kind, type) and issubclass(kind, Struct)
        ]
    return here


def _kinds(kind: object) -> Iterator[Any]:
    """A type, and those it is made of."""
    yield kind
    if get_origin(kind) is not Literal:
        for part in get_args(kind):
            yield from _kinds(part)
