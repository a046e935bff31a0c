"""The inbox as a WSGI application, for Flask and other blocking frameworks: POST /SOURCE.

A body is read within two bounds, its size and one deadline for the whole of it, and not at all where the head is enough to
refuse. It ends where `Content-Length` says, or, without one, where the server says so (`wsgi.input_terminated`, for chunked
bodies); where neither is, there is nothing to read to, and it is refused.

The deadline is looked at between reads, so it cuts off a body that drips, as far as the server hands over what has come
(`read1`). A sender that falls silent is the server's to bound: a blocking read cannot be stopped from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from msgspec import structs

from surehook.core.sources.provider import Reply
from surehook.inbox.receive import IncomingRequest, Receiver

BODY_S = 10.0  # for the whole body, as at the ASGI door
# Bytes of one read: where a server waits until a read is full, the deadline is looked at this often.
PIECE = 64 * 1024

Start = Callable[[str, list[tuple[str, str]]], Any]


class _TooSlow(Exception):
    """The sender hung up before its body was whole, the server gave up waiting, or the deadline is over."""


class _Missing(Exception):
    """Nothing came of the body that the head announces."""


class WsgiApp:
    """`receive_call` judges, stores and answers a whole request; `body_s` is the deadline for its body, in `boot()`'s seconds."""

    def __init__(
        self,
        receiver: Receiver,
        receive_call: Callable[[IncomingRequest], Reply],
        *,
        boot: Callable[[], float],
        body_s: float = BODY_S,
    ) -> None:
        self._receiver = receiver
        self._receive = receive_call
        self._boot = boot
        self._body_s = body_s

    def __call__(self, environ: Mapping[str, object], start_response: Start) -> Iterable[bytes]:
        reply = self._answer(environ)
        headers = [*reply.headers, ("content-length", str(len(reply.body)))]
        start_response(f"{reply.status} {_phrase(reply.status)}", headers)
        return [reply.body]

    def _answer(self, environ: Mapping[str, object]) -> Reply:
        call = call_of(environ)
        length = length_of(environ)
        early = self._receiver.before_body(call, length)
        if early is not None:
            return early
        if length is None and not environ.get("wsgi.input_terminated"):
            return self._receiver.refuse(call.source, "no_body")
        try:
            body = self._body(environ["wsgi.input"], length, self._receiver.body_bytes(call.source))
        except _Missing:
            self._receiver.note_missing(call.source)
            return self._receiver.refuse(call.source, "body_too_slow")
        except _TooSlow:
            return self._receiver.refuse(call.source, "body_too_slow")
        if body is None:
            return self._receiver.refuse(call.source, "too_large")
        return self._receive(structs.replace(call, body=body))

    def _body(self, stream: Any, length: int | None, most: int) -> bytes | None:
        """Read the whole body; None when it is larger than that. Never more than `most` + 1 bytes are read."""
        read = getattr(stream, "read1", stream.read)
        end, size = self._boot() + self._body_s, 0
        parts: list[bytes] = []
        wanted = most + 1 if length is None else length
        while size < wanted and (part := read(min(PIECE, wanted - size))):
            size += len(part)
            parts.append(part)
            if size < wanted and self._boot() > end:
                raise _TooSlow
        if length is None and size > most:
            return None
        if length is not None and size < length:
            raise _TooSlow if size else _Missing
        return parts[0] if len(parts) == 1 else b"".join(parts)


def call_of(environ: Mapping[str, Any]) -> IncomingRequest:
    """Read the head of a request, without its body."""
    headers = [
        (name[5:].replace("_", "-").lower(), value)
        for name, value in environ.items()
        if name.startswith("HTTP_")
    ]
    headers += [
        (name.replace("_", "-").lower(), environ[name])
        for name in ("CONTENT_TYPE", "CONTENT_LENGTH")
        if environ.get(name)
    ]
    query = environ.get("QUERY_STRING", "")
    path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
    host = environ.get("HTTP_HOST", "")
    url = f"{environ.get('wsgi.url_scheme', 'http')}://{host}{path}" + (f"?{query}" if query else "")
    return IncomingRequest(
        method=environ["REQUEST_METHOD"],
        source=environ.get("PATH_INFO", "").strip("/"),
        query=query,
        url=url,
        headers=headers,
        peer=environ.get("REMOTE_ADDR", ""),
        body=b"",
    )


def length_of(environ: Mapping[str, Any]) -> int | None:
    """Read the body's length by the sender's word; None where it does not say."""
    said = environ.get("CONTENT_LENGTH") or ""
    return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Answer"
