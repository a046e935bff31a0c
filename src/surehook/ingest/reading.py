"""Reads a message of a broker as one item of `POST /v1/events/batch`. Pure: bytes in, bytes out.

    our own JSON        the body of POST /v1/events, as it is
    CloudEvent in JSON  `application/cloudevents+json`, or any object with `specversion` (structured mode)
    CloudEvent in headers  `cloudEvents:id` and so on; the body is the data (binary mode)

A CloudEvent is known by source and id together, and they become its idempotency key; an id that is an event id of
ours stays one. `type`, `source`, `subject` and `data` keep their names, `time` is `occurred_at`, and the extension
attributes tenant, sequence, schemaversion, workflowversion, correlationid and causationid are understood; others
are left behind. `data` is never re-serialised.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from surehook.core import envelope, idempotency, ids, limits
from surehook.core.errors import Problem

STRUCTURED = "application/cloudevents"
PREFIXES = ("cloudevents:", "cloudevents_", "ce-", "ce_")  # of headers, in lower case
_EXTENSIONS = {
    "tenant": "tenant",
    "schemaversion": "schema_version",
    "workflowversion": "workflow_version",
    "correlationid": "correlation_id",
    "causationid": "causation_id",
}
_ATTRIBUTES = (
    "specversion", "id", "source", "type", "subject", "time", "sequence", "datacontenttype", *_EXTENSIONS,
)  # fmt: skip
_fields = msgspec.json.Decoder(dict[str, Raw]).decode
_one_value = msgspec.json.Decoder(Raw).decode  # and nothing behind it, since it is put into a text of ours
_encode = msgspec.json.encode
Found = TypeVar("Found")


class Poison(Problem):
    """A message that no server could accept; its code goes into the dead letter, never into an answer."""


class BrokerMessage(Struct, frozen=True):
    """A message as the broker gave it. `unread` says why its properties could not be read."""

    body: bytes
    content_type: str | None = None
    message_id: str | None = None
    headers: Mapping[str, object] = {}
    unread: str | None = None


class IngestRules(Struct, frozen=True):
    """tenant       whose event it is where the message does not say
    idempotency  where neither an id nor a key is in the message: `message-id` (of the broker; without one it is
                 refused), `body` (its hash), or `none` (a message that comes twice is two events)
    """

    tenant: str | None = None
    idempotency: str = "message-id"


def item(message: BrokerMessage, rules: IngestRules, *, event_id: str) -> bytes:
    """The message as one item of a batch. Raises Problem where no server would accept it: Poison, or a Problem of the
    reader of events.

    `event_id` is its id where nothing else names it (`none`), so that a request that is repeated is still one event.
    """
    if len(message.body) > limits.EVENT_BODY_BYTES:
        raise Poison("body_too_large", f"the message has more than {limits.EVENT_BODY_BYTES} bytes")
    if message.unread is not None:
        raise Poison("unreadable", f"its properties cannot be read: {message.unread}")
    text = _own(message)
    present = _present(text)
    added: dict[str, object] = {}
    if rules.tenant is not None and "tenant" not in present:
        added["tenant"] = rules.tenant
    if not {"id", "idempotency_key"} & present.keys():
        added |= _known_by(message, rules, event_id)
    if added:
        # Put in front of what is there: the text itself, with keys given twice, stays for the server to judge.
        rest = text.lstrip()[1:].lstrip()
        text = _encode(added)[:-1] + (b"" if rest[:1] == b"}" else b",") + rest
    (judged,) = envelope.decode_batch(b"[" + text + b"]")
    if isinstance(judged, Problem):
        raise judged
    return text


def _own(message: BrokerMessage) -> bytes:
    """The message as our own JSON."""
    attributes = _in_headers(message.headers)
    if attributes is not None:
        if not _is_json(message.content_type):
            raise Poison(
                "not_json_data", f"its data is {message.content_type}", hint="only JSON is delivered"
            )
        return _of_cloud_event(attributes, _read(_one_value, message.body, "its data is not JSON", "data"))
    if (message.content_type or "").lower().startswith(STRUCTURED) or b'"specversion"' in message.body:
        fields = _present(message.body)
        if "specversion" in fields:
            return _structured(fields)
    return message.body


def _present(text: bytes) -> dict[str, Raw]:
    return _read(_fields, text, "the message is not a JSON object")


def _read(
    reader: Callable[[bytes | Raw], Found], text: bytes | Raw, wrong: str, field: str | None = None
) -> Found:
    """Call the reader; raises Poison with its complaint."""
    try:
        return reader(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise Poison("invalid_json", f"{wrong}: {error}", field=field) from None


def _known_by(message: BrokerMessage, rules: IngestRules, event_id: str) -> dict[str, str]:
    if rules.idempotency == "none":
        return {"id": event_id}
    if rules.idempotency == "body":
        return {"idempotency_key": "sha256-" + hashlib.sha256(message.body).hexdigest()}
    if not message.message_id:
        raise Poison(
            "no_message_id", "nothing tells this message from another that says the same",
            hint="publish with a message id, or ingest with --idempotency body or none",
        )  # fmt: skip
    return {"idempotency_key": _key(message.message_id)}


def _key(text: str) -> str:
    """The text as an idempotency key, hashed where it cannot be one."""
    try:
        return idempotency.check_key(text)
    except Problem:
        return "sha256-" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# -- CloudEvents --------------------------------------------------------------------------------------------


def _in_headers(headers: Mapping[str, object]) -> dict[str, object] | None:
    """The attributes of binary mode; None where the message is not in it."""
    found = {}
    for name, value in headers.items():
        lower = name.lower()
        for prefix in PREFIXES:
            if lower.startswith(prefix):
                found[lower[len(prefix) :]] = value
    if "specversion" not in found:
        return None
    return {name: _of_header(name, found[name]) for name in _ATTRIBUTES if name in found}


def _of_header(name: str, value: object) -> object:
    """A header as JSON would have it. AMQP has bytes and instants as well, and tables, which no attribute is."""
    if isinstance(value, bytes | bytearray):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Poison("wrong_type", "the header is not text in UTF-8", field=name) from None
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict | list):
        raise Poison("wrong_type", "the header is a table or a list", field=name)
    return value


def _structured(fields: dict[str, Raw]) -> bytes:
    attributes = {
        name: _read(msgspec.json.decode, fields[name], "it cannot be read", name)
        for name in _ATTRIBUTES
        if name in fields
    }
    if "data_base64" in fields:
        raise Poison(
            "not_json_data", "its data is binary", field="data_base64", hint="only JSON is delivered"
        )
    if not _is_json(attributes.get("datacontenttype")):
        raise Poison("not_json_data", f"its data is {attributes['datacontenttype']}", field="datacontenttype")
    return _of_cloud_event(attributes, fields.get("data", Raw(b"null")))


def _is_json(content_type: object) -> bool:
    kind = str(content_type or "application/json").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _of_cloud_event(attributes: Mapping[str, Any], data: Raw) -> bytes:
    given = {name: value for name, value in attributes.items() if value is not None}
    if not str(given.get("specversion", "")).startswith("1."):
        raise Poison("unknown_specversion", "only CloudEvents 1.x are understood", field="specversion")
    for name in ("id", "source", "type"):
        if not isinstance(given.get(name), str) or not given[name]:
            raise Poison("missing_field", f"a CloudEvent has {name}", field=name)
    event: dict[str, object] = {"type": given["type"], "source": given["source"]}
    if ids.try_parse(ids.EVENT, given["id"]) is not None:
        event["id"] = given["id"]
    else:
        event["idempotency_key"] = _key(f"{given['source']}#{given['id']}")
    if "subject" in given:
        event["subject"] = given["subject"]
    if "time" in given:
        event["occurred_at"] = str(given["time"])
    if "sequence" in given:
        event["sequence"] = _whole(given["sequence"])
    event |= {ours: given[theirs] for theirs, ours in _EXTENSIONS.items() if theirs in given}
    return _encode(event | {"data": data})


def _whole(value: object) -> int:
    """CloudEvents write sequences as text."""
    text = str(value)
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise Poison("wrong_type", "a sequence is a whole number", field="sequence")
    return int(text)
