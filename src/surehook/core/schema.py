"""JSON Schemas of event types: compiled once, applied to every event of the type.

A schema is judged when it is registered, and is complete in itself: a reference that leads outside the document is
refused, and nothing is ever fetched, neither from the network nor from a file. Its cost is bounded:

- size (`limits.SCHEMA_BODY_BYTES`, at the door) and nesting (`limits.DATA_DEPTH`, as of every JSON value here);
- patterns, in number and in compiled size, matched by an engine that is linear in the text. So there is no
  look-around and no back-reference: an engine that has them can be kept busy for years by thirty characters.

- time: what a schema would cost is counted before the engine is asked (`core/schema_cost.py`), which cannot be stopped.
  A schema that is too costly for any payload is refused when it is registered, a payload that is too costly for its
  schema when it is published (`schema_too_costly`), so that neither can block the loop.

The draft is the one that `$schema` names, 2020-12 where it names none. `format` is checked. Formats that the
drafts do not define are annotations, as the drafts say.

The engine is imported with the first schema, so that it need not be installed where there are none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import msgspec

from surehook.core import json_text, limits
from surehook.core.errors import Problem
from surehook.core.pattern_cost import weigh
from surehook.core.schema_cost import LIGHT, Cost, Counter, counting
from surehook.core.schema_parts import TooMuch, inside
from surehook.core.steps import SLICE_COST, Steps, at_once

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError, Validator

FIELD_CHARS = 80  # of a path into `data`: its keys are the publisher's text
SENTENCE_CHARS = 240  # of the engine's message, which quotes the schema: an enumeration may be long
VALUE = "the value"  # stands in a sentence where the engine would quote the payload

# Where the engine's sentence would quote keys of the payload, or reads badly. The path names the place.
_OWN_WORDS = {
    "additionalProperties": "the schema has no such property, and allows no other",
    "unevaluatedProperties": "the schema has no such property, and allows no other",
    "falseSchema": "the schema allows nothing here",
    "propertyNames": "a key has a name that the schema does not allow",
    "contains": "not as many items as the schema asks for are as it asks",
}
_STANDS_ALONE = "everything a schema refers to stands in the schema itself; nothing is fetched"
_PATTERNS = "no look-around, no back-references; say lengths with minLength and maxLength"

_TOO_COSTLY = "to check this payload by the schema of its type would hold up everybody else for too long"
_CHEAPER = (
    "send less in one event, or give the type a schema with fewer alternatives for each item and no contains"
)
_UNSEARCHED = "it is not as the schema says; where, is not searched for in a payload of this size"
_CHEAPER_SCHEMA = "refer to a definition once, not from each of several alternatives at each step of a chain"
_TOO_MUCH = "it costs too much for any payload: references or alternatives multiply, or it is too large"

LONG_DIGITS = 18  # every number with so many fits in 64 bits
_EXPONENT = re.compile(rb"[0-9][eE]")
_decode = msgspec.json.Decoder().decode


class Schema:
    """A compiled schema. `source` is the JSON it was made from; `fault` says why it cannot be used."""

    __slots__ = ("__weakref__", "_counter", "_validator", "fault", "source")

    def __init__(
        self, source: bytes, validator: Validator | None, counter: Counter | None, fault: str | None = None
    ) -> None:
        self.source = source
        self.fault = fault
        self._validator = validator
        self._counter = counter

    def weight(self, data: bytes) -> int:
        """Upper bound of the steps of judging this payload, from counts of its bytes alone."""
        return 0 if self._counter is None else self._counter.weight(data)

    def mismatch(self, data: bytes) -> Problem | None:
        """The first mismatch of this valid JSON: Problem `schema_mismatch`, or None.

        Its field is the path of the first error, `data.signer.email`; its sentence holds nothing of the payload.
        A schema that cannot be used refuses everything with `invalid_schema`: unchecked events would be worse.
        """
        if self._validator is None or self._counter is None:
            return Problem(
                "invalid_schema", f"the event type has a schema that cannot be used: {self.fault}", field="type",
                hint="PATCH the event type with a schema that can, or with null",
            )  # fmt: skip
        from jsonschema_rs import ValidationError

        # The quick reader takes 8 µs for a number such as 1e300.
        value = json.loads(data) if _EXPONENT.search(data) else _decode(data)
        cost = None if self._counter.weight(data) <= LIGHT else self._count(data, value)
        if cost is not None and cost.steps + cost.own > limits.SCHEMA_STEPS:
            return Problem("schema_too_costly", _TOO_COSTLY, field="data", hint=_CHEAPER)
        if self._validator.is_valid(value):
            return None
        if (cost or self._count(data, value)).errors > limits.SCHEMA_STEPS:
            return Problem("schema_mismatch", _UNSEARCHED, field="data")
        try:
            self._validator.validate(value)
        except ValidationError as error:
            return _mismatch(error)
        return None

    def _count(self, data: bytes, value: object) -> Cost:
        assert self._counter is not None
        return self._counter.count(value, has_long=json_text.has_long_number(data, LONG_DIGITS))


def compile_schema(source: bytes) -> Schema:
    """Compile a schema from JSON. Raises Problem `invalid_schema` (field `schema`)."""
    return at_once(compile_in_steps(source))


def compile_in_steps(source: bytes) -> Steps[Schema]:
    """`compile_schema` in steps; the engine's part, some 30 ms for the largest schema, is one step."""
    flaw = yield from json_text.flaw_in_steps(source, depth=limits.DATA_DEPTH, digits=limits.NUMBER_DIGITS)
    if flaw is not None:
        raise _refused(f"not JSON that can be kept: {flaw}")
    yield SLICE_COST
    document = _decode(source)
    if count_patterns(document) > limits.SCHEMA_PATTERNS:
        raise _refused(f"a schema has at most {limits.SCHEMA_PATTERNS} patterns")
    yield SLICE_COST
    if count_parts(document) > limits.SCHEMA_PARTS:
        raise _refused(f"a schema has at most {limits.SCHEMA_PARTS:,} objects")
    yield SLICE_COST
    if count_places(document) > limits.SCHEMA_PATTERN_PLACES:
        raise _refused(
            f"all patterns have at most {limits.SCHEMA_PATTERN_PLACES:,} places together", _PATTERNS
        )
    yield SLICE_COST
    from jsonschema_rs import RegexOptions, ValidationError, validator_for

    linear = RegexOptions(size_limit=limits.SCHEMA_PATTERN_BYTES, dfa_size_limit=limits.SCHEMA_PATTERN_BYTES)
    try:
        validator = validator_for(
            source.decode(),
            pattern_options=linear,
            retriever=_fetch_nothing,
            validate_formats=True,
            mask=VALUE,
        )
    except ValidationError as error:
        raise _unusable(error) from None
    except ValueError as error:
        raise _refused(_cut(str(error), SENTENCE_CHARS)) from None
    yield SLICE_COST
    try:
        counter = yield from counting(document)
    except TooMuch as error:
        raise _refused(str(error)) from None
    if counter.least > limits.SCHEMA_STEPS:
        raise _refused(_TOO_MUCH, _CHEAPER_SCHEMA)
    return Schema(source, validator, counter)


def kept_in_steps(source: bytes) -> Steps[Schema]:
    """A schema from the ledger. One that is not usable, because an older version accepted it, becomes a Schema that refuses
    every event: a server must start whatever its ledger holds."""
    try:
        return (yield from compile_in_steps(source))
    except Problem as problem:
        return Schema(source, None, None, problem.detail)


def count_patterns(schema: object) -> int:
    """Number of regular expressions in a schema at most: `pattern` texts and keys of `patternProperties`, wherever."""
    return sum(1 for _ in _patterns(schema))


def count_parts(schema: object) -> int:
    """Number of objects: subschemas, and objects that hold them."""
    return sum(isinstance(value, dict) for value in inside(schema))


def count_places(schema: object) -> int:
    """Size of all its regular expressions, repetitions written out."""
    return sum(weigh(pattern)[0] for pattern in _patterns(schema))


def _patterns(schema: object) -> Iterator[str]:
    for value in inside(schema):
        if isinstance(value, dict):
            if isinstance(value.get("pattern"), str):
                yield value["pattern"]
            named = value.get("patternProperties")
            if isinstance(named, dict):
                yield from named


def _fetch_nothing(uri: str) -> NoReturn:
    raise ValueError("nothing is fetched")


def _refused(detail: str, hint: str | None = None) -> Problem:
    return Problem("invalid_schema", detail, field="schema", hint=hint)


def _unusable(error: ValidationError) -> Problem:
    """The engine's reason to refuse a schema: the meta-schema, or a reference that leads nowhere."""
    if error.kind.name == "$ref":
        said = error.message.partition(" and retrieving it failed")[0]
        return _refused(f"a reference cannot be followed: {_cut(said, SENTENCE_CHARS)}", _STANDS_ALONE)
    place = _cut("/".join(map(str, error.instance_path)), FIELD_CHARS)
    at = f"at {json_text.quoted(place)}: " if place else ""
    if error.kind.name == "format" and error.kind.value == "regex":
        return _refused(f"{at}not a pattern that can be matched in linear time and space", _PATTERNS)
    return _refused(at + _cut(error.message, SENTENCE_CHARS))


def _mismatch(error: ValidationError) -> Problem:
    keyword = error.kind.name
    path = ["data", *map(str, error.instance_path)]
    if keyword == "required":
        path.append(str(error.kind.value))
    elif keyword in ("additionalProperties", "unevaluatedProperties"):
        path.append(str(error.kind.value[0]))
    detail = _OWN_WORDS.get(keyword) or _cut(error.message, SENTENCE_CHARS)
    return Problem("schema_mismatch", detail, field=_cut(".".join(path), FIELD_CHARS))


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: chars - 1] + "…"
