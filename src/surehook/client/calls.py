"""Requests of both clients, and the meaning of their answers. Pure: time and randomness are handed in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Raw, Struct

from surehook import __version__
from surehook.client.errors import Refused, Unreachable
from surehook.client.http1 import HttpAnswer
from surehook.core import ids
from surehook.core.json_value import encode_value
from surehook.core.limits import IDEMPOTENCY_KEY_CHARS as KEY_CHARS_MAX

BATCH_EVENTS_MAX = 1_000  # the server's bound
BATCH_BYTES_MAX = 7 * 1024 * 1024  # below the server's 8 MiB, with air for the brackets
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # the last: nested too deep
CODE = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
WAIT_FIRST_S, WAIT_MAX_S = 0.1, 2.0  # between repeats: soon at first, then gently


class Sent(Struct, frozen=True):
    """The server has the event on disk. `deliveries`: how many endpoints it goes to."""

    id: str
    deliveries: int


class ApiCall(Struct, frozen=True):
    """One request. `repeatable`: doing it twice is the same as doing it once; `events` of a batch."""

    method: str
    path: str
    body: bytes = b""
    headers: dict[str, str] = {}
    repeatable: bool = False
    events: int = 0


class ServerUrl(Struct, frozen=True):
    """The URL of the server, taken apart."""

    url: str
    secure: bool
    host: str
    port: int
    prefix: str

    @classmethod
    def of(cls, url: str) -> ServerUrl:
        """Raises ValueError where `url` is not http:// or https:// with a host."""
        from urllib.parse import urlsplit

        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an http:// or https:// address")
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        return cls(url.rstrip("/"), secure, parts.hostname, port, parts.path.rstrip("/"))

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def headers_of(server: ServerUrl, key: str | None, call: ApiCall) -> dict[str, str]:
    """All headers of a request."""
    headers = {
        "host": server.authority,
        "user-agent": f"surehook-client/{__version__}",
        "accept": "application/json",
    }
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    if call.body:
        headers["content-type"] = "application/json"
    return headers | call.headers


def send(
    fields: Mapping[str, object], data: object, *, key: str | None, now_ms: int, chance: bytes
) -> ApiCall:
    """Publish one event. Without an idempotency key the event gets its id here, so that a repeat is known."""
    event = {name: value for name, value in fields.items() if value is not None}
    headers = {}
    if key is not None:
        check_key(key)
        headers["idempotency-key"] = key
    elif "id" not in event:
        event["id"] = event_id(now_ms, chance)
    event["data"] = Raw(data) if isinstance(data, bytes) else data
    return ApiCall("POST", "/v1/events", encode_value(event), headers, repeatable=True)


def check_key(key: str) -> None:
    """Raises ValueError for an idempotency key that no header can carry unharmed."""
    if not 1 <= len(key) <= KEY_CHARS_MAX or not all("!" <= char <= "~" for char in key):
        raise ValueError(f"an idempotency key is 1 to {KEY_CHARS_MAX} visible ASCII characters")


def batches(
    events: Iterable[Mapping[str, object]], *, now_ms: int, chances: Iterable[bytes]
) -> Iterable[ApiCall]:
    """Publish many events in as few requests as the server's bounds allow, in order."""
    lines: list[bytes] = []
    size = 0
    for event, chance in zip(events, chances, strict=False):
        given = dict(event)
        if "id" not in given and "idempotency_key" not in given:
            given["id"] = event_id(now_ms, chance)
        line = encode_value(given)
        if lines and (len(lines) == BATCH_EVENTS_MAX or size + len(line) > BATCH_BYTES_MAX):
            yield _batch(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield _batch(lines)


def event_id(now_ms: int, chance: bytes) -> str:
    return ids.text(ids.EVENT, ids.uuid7(now_ms, chance))


def request(
    method: str, path: str, *, query: Mapping[str, object] | None = None, json: object = None
) -> ApiCall:
    """Any other request. None values of the query are left out."""
    given = {name: value for name, value in (query or {}).items() if value is not None}
    target = path + ("?" + urlencode(given) if given else "")
    body = b"" if json is None else encode_value(json)
    return ApiCall(method, target, body, repeatable=method in ("GET", "DELETE", "PATCH"))


def segment(value: str) -> str:
    """One part of a path."""
    return quote(value, safe="")


def read(answer: HttpAnswer, type: object = Any) -> Any:
    """The value of an answer as `type`; None where that says nothing (None), or anything (Any) and nothing came. Raises Refused
    for 4xx and 5xx, and for what is no answer of ours."""
    if not 200 <= answer.status < 300:
        raise refusal(answer.status, answer.body)
    if type is None or (type is Any and not answer.body):
        return None
    try:
        return msgspec.json.decode(answer.body, type=type)
    except msgspec.ValidationError as error:
        raise Refused(
            answer.status,
            "not_understood",
            f"the answer is not as this version of surehook knows it: {error}",
            hint="upgrade surehook here, or read the answer as JSON: client.call(method, path)",
        ) from None
    except UNREADABLE:
        raise foreign(answer.status) from None


def refusal(status: int, body: bytes) -> Refused:
    """The problem document of an answer as an error."""
    try:
        problem = msgspec.json.decode(body)
    except UNREADABLE:
        return foreign(status)
    # Others have a `code` too, and mean something else: a number, words.
    if not isinstance(problem, dict) or not CODE.fullmatch(str(problem.get("code", ""))):
        return foreign(status)
    return problem_error(status, problem)


def problem_error(status: int, problem: Mapping[str, Any]) -> Refused:
    detail = problem.get("detail") or problem.get("title") or "refused"
    return Refused(
        status, str(problem["code"]), str(detail), field=problem.get("field"), hint=problem.get("hint")
    )


def sent_each(values: object, count: int) -> list[Sent | Refused]:
    """The answers of a batch of `count` events in order: sent, or the problem of that one event. Raises Refused where they are
    no such answers: an event without one would be lost unseen."""
    if not isinstance(values, list) or len(values) != count:
        raise foreign(202)
    try:
        return [
            msgspec.convert(value, Sent)
            if "deliveries" in value
            else problem_error(int(value.get("status", 422)), value)
            for value in values
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise foreign(202) from None


def wait_before_repeat(
    call: ApiCall, error: Refused | Unreachable, *, repeat: int, retry_after_s: float | None, fraction: float
) -> float | None:
    """Seconds until `call` is worth repeating (repeat 1, 2, …), or None where repeating is wrong or useless."""
    if is_doubtful(error) and not call.repeatable:
        return None
    # With 408, 429 and 503 nothing was done, unless it is said; another answer of 500 and above leaves that open.
    if isinstance(error, Refused) and not (
        error.status in (408, 429, 503) or (error.status >= 500 and call.repeatable)
    ):
        return None
    wait = min(WAIT_MAX_S, WAIT_FIRST_S * 2.0 ** min(repeat - 1, 16)) * (0.5 + fraction / 2)
    return max(wait, retry_after_s or 0.0)


def is_doubtful(error: Refused | Unreachable) -> bool:
    """True if the request may have taken effect all the same."""
    return error.maybe_done if isinstance(error, Unreachable) else error.code == "outcome_unknown"


def retry_after_s(answer: HttpAnswer) -> float | None:
    """The server's wish in whole seconds (it never sends a date)."""
    written = answer.headers.get("retry-after", "")
    return float(written) if written.isascii() and written.isdigit() and len(written) < 10 else None


def _batch(lines: list[bytes]) -> ApiCall:
    body = b"[" + b",".join(lines) + b"]"
    return ApiCall("POST", "/v1/events/batch", body, repeatable=True, events=len(lines))


def foreign(status: int) -> Refused:
    return Refused(
        status,
        "not_surehook",
        f"an answer ({status}) that no surehook server gives",
        hint="check the address",
    )
