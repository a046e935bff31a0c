"""Reads what a publisher sent: the request's JSON to a checked event, with `data` left as the bytes it came in.

Speed matters here, since every accepted event passes. Costly checks run only on texts that could fail them:

- Keys given twice. Every key and every text of the envelope is written between two quotes. Where there are exactly
  as many quotes outside `data` as the fields that were found account for, no key was given twice: a repeat,
  a null, and an escaped quote can only add some. Only then is the text walked token by token.
- Nesting. As many opening brackets as the depth allows cannot be nested deeper than it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec import Raw, Struct

from surehook.core import ids, instants, json_items, json_text, limits
from surehook.core.errors import Problem, let_go
from surehook.core.idempotency import check_key
from surehook.core.json_pieces import PIECE
from surehook.core.steps import Steps, at_once
from surehook.core.subscription import check_event_type


def check_tenant(tenant: str) -> str:
    """The id itself. Raises Problem `unknown_tenant` for one that no tenant can have."""
    if re.fullmatch(limits.TENANT_PATTERN, tenant, re.ASCII) is None:
        hint = f"its id has 1 to {limits.TENANT_CHARS} of a-z, 0-9, _ and -"
        raise Problem("unknown_tenant", "no tenant can be called so", field="tenant", hint=hint)
    return tenant


class EventIn(Struct, frozen=True, gc=False):
    """A published event, checked. `data` is the exact JSON bytes; `occurred_at` is in Unix milliseconds."""

    tenant: str
    type: str
    data: bytes
    id: bytes | None = None
    subject: str | None = None
    sequence: int | None = None
    schema_version: str | None = None
    workflow_version: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    source: str | None = None
    occurred_at: int | None = None
    idempotency_key: str | None = None  # of a batch's item only


class _Written(Struct, forbid_unknown_fields=True, gc=False):
    """The request as JSON: the same fields before they were judged."""

    tenant: str
    type: str
    data: Raw
    id: str | None = None
    subject: str | None = None
    sequence: int | None = None
    schema_version: str | None = None
    workflow_version: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    source: str | None = None
    occurred_at: str | None = None


class _WrittenItem(_Written, forbid_unknown_fields=True, gc=False):
    idempotency_key: str | None = None


_decode_one = msgspec.json.Decoder(_Written).decode
_decode_item = msgspec.json.Decoder(_WrittenItem).decode

_DATA_FLAWS = {
    "invalid_json": "`data` is not JSON",
    "too_deep": f"`data` is nested more than {limits.DATA_DEPTH} deep",
    "number_out_of_range": "`data` holds a number that no double can hold",
    "bad_text": "`data` holds U+0000, which not every receiver can store",
}


def decode_event(raw: bytes) -> EventIn:
    """One event from the body of a request.

    Raises Problem, with the field where there is one: body_too_large (413), invalid_json, missing_field,
    unknown_field, wrong_type, duplicate_key, bad_text, too_long, too_deep, number_out_of_range, out_of_range,
    invalid_event_type, bad_id, bad_time.
    """
    if len(raw) > PIECE:
        return at_once(decode_event_in_steps(raw))
    try:
        written = _decode_one(raw)
    except json_text.DECODE_ERRORS as error:
        raise at_once(_problem(error, raw)) from None
    return _judged(written, raw, None)


def decode_event_in_steps(raw: bytes) -> Steps[EventIn]:
    """`decode_event` in steps: yields the cost of each, in bytes. A small event is one step."""
    if len(raw) <= PIECE:
        return decode_event(raw)
    if len(raw) > limits.EVENT_BODY_BYTES:
        raise Problem("body_too_large", f"an event has at most {limits.EVENT_BODY_BYTES} bytes", status=413)
    try:
        written = _decode_one(raw)
    except json_text.DECODE_ERRORS as error:
        raise (yield from _problem(error, raw)) from None
    return (yield from _judged_in_steps(written, raw, None))


def decode_batch(raw: bytes) -> list[EventIn | Problem]:
    """The events of a batch in order, each bad one as its own Problem in its place. Raises what `split_batch` raises."""
    return [decode_item(each) for each in split_batch(raw)]


def split_batch(raw: bytes) -> list[bytes]:
    """The events of a batch as they were written, for `decode_item`. Raises what `spans_of_batch` raises."""
    return list(at_once(split_in_steps(raw)))


def split_in_steps(raw: bytes | memoryview) -> Steps[Iterable[bytes]]:
    """`split_batch` in steps: yields the cost of each, in bytes. A short batch without a fault is one step."""
    found = json_items.at_once(raw, most=limits.BATCH_EVENTS)
    if found is not None:
        return found
    return (bytes(raw[begin:end]) for begin, end in (yield from spans_of_batch(raw)))


def spans_of_batch(raw: bytes | memoryview) -> Steps[list[json_items.Span]]:
    """Beginning and end of each event of a batch, in steps: yields the cost of each, in bytes.

    Raises Problem where the body as a whole is no batch: body_too_large (413), too_many_events, invalid_json, wrong_type (not
    an array). Reading stops at one event too many.
    """
    if len(raw) > limits.BATCH_BODY_BYTES:
        raise Problem("body_too_large", f"a batch has at most {limits.BATCH_BODY_BYTES} bytes", status=413)
    try:
        found = yield from json_items.spans(raw, most=limits.BATCH_EVENTS)
    except json_text.DECODE_ERRORS as error:
        fault = json_text.fault(error)
        if fault.code == "invalid_json" and (yield from json_text.mend_in_steps(raw)) is not None:
            raise _half(None) from None
        raise Problem(fault.code, fault.detail, field=fault.path or None) from None
    if len(found) > limits.BATCH_EVENTS:
        raise Problem("too_many_events", f"a batch has at most {limits.BATCH_EVENTS} events")
    return found


def decode_item(raw: bytes) -> EventIn | Problem:
    """One event of a batch, or its Problem."""
    if len(raw) > PIECE:
        return at_once(decode_item_in_steps(raw))
    try:
        written = _decode_item(raw)
        return _judged(written, raw, _key(written))
    except Problem as problem:
        let_go(problem)
        return problem
    except json_text.DECODE_ERRORS as error:
        return at_once(_problem(error, raw))


def decode_item_in_steps(raw: bytes) -> Steps[EventIn | Problem]:
    """`decode_item` in steps."""
    if len(raw) <= PIECE:
        return decode_item(raw)
    try:
        if len(raw) > limits.EVENT_BODY_BYTES:
            raise Problem(
                "body_too_large", f"an event has at most {limits.EVENT_BODY_BYTES} bytes", status=413
            )
        written = _decode_item(raw)
        return (yield from _judged_in_steps(written, raw, _key(written)))
    except Problem as problem:
        let_go(problem)
        return problem
    except json_text.DECODE_ERRORS as error:
        return (yield from _problem(error, raw))


def _key(written: _WrittenItem) -> str | None:
    key = written.idempotency_key
    return None if key is None else check_key(key, field="idempotency_key")


def _judged(written: _Written, raw: bytes, key: str | None) -> EventIn:
    data = bytes(written.data)
    is_plain = _enveloped(written, raw, data, key)
    flaw = json_text.flaw(data, depth=limits.DATA_DEPTH, digits=limits.NUMBER_DIGITS)
    return _event(written, data, key, flaw, is_plain=is_plain)


def _judged_in_steps(written: _Written, raw: bytes, key: str | None) -> Steps[EventIn]:
    data = bytes(written.data)
    is_plain = _enveloped(written, raw, data, key)
    yield len(raw) // 4
    flaw = yield from json_text.flaw_in_steps(data, depth=limits.DATA_DEPTH, digits=limits.NUMBER_DIGITS)
    return _event(written, data, key, flaw, is_plain=is_plain)


def _enveloped(written: _Written, raw: bytes, data: bytes, key: str | None) -> bool:
    """Check everything around `data`; True if that is a tenant and a type alone."""
    is_plain = _is_plain(raw, data)
    if not is_plain:
        _check_keys(raw, data, _quotes(written, key))
    check_event_type(written.type)
    return is_plain


def _event(written: _Written, data: bytes, key: str | None, flaw: str | None, *, is_plain: bool) -> EventIn:
    if flaw is not None:
        raise Problem(flaw, _DATA_FLAWS[flaw], field="data")
    if is_plain:
        return EventIn(written.tenant, written.type, data)
    return _full(written, data, key)


def _is_plain(raw: bytes, data: bytes) -> bool:
    """True if tenant, type and data, in which data is last, are all that was given. Three keys and two texts are ten quotes,
    and anything else (another key, one of these again, an escape) adds more. False negatives are possible."""
    return raw.endswith(data, 0, -1) and raw.count(b'"', 0, -len(data) - 1) == 10


def _full(written: _Written, data: bytes, key: str | None) -> EventIn:
    """An event with more than tenant, type and data."""
    if written.sequence is not None and not 0 <= written.sequence <= limits.SEQUENCE_MAX:
        raise Problem("out_of_range", f"sequence is 0 to {limits.SEQUENCE_MAX}", field="sequence")
    return EventIn(
        written.tenant,
        written.type,
        data,
        None if written.id is None else _event_id(written.id),
        _text("subject", written.subject, limits.TEXT_CHARS),
        written.sequence,
        _text("schema_version", written.schema_version, limits.VERSION_CHARS),
        _text("workflow_version", written.workflow_version, limits.VERSION_CHARS),
        _text("correlation_id", written.correlation_id, limits.TEXT_CHARS),
        _text("causation_id", written.causation_id, limits.TEXT_CHARS),
        _text("source", written.source, limits.TEXT_CHARS),
        None if written.occurred_at is None else instants.parse(written.occurred_at, field="occurred_at"),
        key,
    )


def _text(field: str, text: str | None, chars: int) -> str | None:
    if text is None:
        return None
    if len(text) > chars:
        raise Problem("too_long", f"{field} has at most {chars} characters", field=field)
    if "\x00" in text:
        raise Problem("bad_text", f"{field} holds U+0000", field=field)
    return text


def _event_id(text: str) -> bytes:
    raw = ids.try_parse(ids.EVENT, text)
    if raw is None or not ids.is_uuid7(raw):
        raise Problem(
            "bad_id",
            "not an event id",
            field="id",
            hint="`evt_` and 26 characters, as the client library makes them; other keys belong in Idempotency-Key",
        )
    return raw


def _quotes(written: _Written, key: str | None) -> int:
    """Number of quotes in the fields that were found: two for a key, two for a text."""
    w = written
    texts = (
        (w.id is not None)
        + (w.subject is not None)
        + (w.schema_version is not None)
        + (w.workflow_version is not None)
        + (w.correlation_id is not None)
        + (w.causation_id is not None)
        + (w.source is not None)
        + (w.occurred_at is not None)
        + (key is not None)
    )
    return 10 + 4 * texts + 2 * (w.sequence is not None)


def _check_keys(raw: bytes, data: bytes, quotes: int) -> None:
    """Refuse an envelope that has a key twice (see the head of this file)."""
    if raw.endswith(data, 0, -1):
        clean = raw.count(b'"', 0, -len(data) - 1) == quotes
    else:
        clean = raw.count(b'"') - data.count(b'"') == quotes
    if not clean:
        # Every bracket and every text is a token. A key of the envelope is no part of `data`, wherever those bytes stand first.
        twice = json_text.duplicate_key(raw if len(data) <= PIECE else raw.replace(data, b"0", 1))
        if twice is not None:
            raise Problem("duplicate_key", "the key is given twice", field=twice)


def _problem(error: Exception, raw: bytes) -> Steps[Problem]:
    fault = json_text.fault(error)
    if fault.code == "invalid_json":
        has_half, field = yield from json_text.field_of_half(raw)
        if has_half:
            return _half(field)
    return Problem(fault.code, fault.detail, field=fault.path or None)


def _half(field: str | None) -> Problem:
    return Problem("bad_text", "a text holds half of a surrogate pair, which no UTF-8 text can", field=field)
