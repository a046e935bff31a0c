"""The inbox as a WSGI application, for Flask and other blocking frameworks: POST /SOURCE.

A body without a length is refused, since WSGI gives no other end to read to. How long a slow body may take is the server's to
bound: a blocking read cannot be stopped from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any

from msgspec import structs

from surehook.core.sources.provider import Reply
from surehook.inbox.receive import Call, Receiver

Start = Callable[[str, list[tuple[str, str]]], Any]


class WsgiApp:
    """`receive_call` judges, stores and answers a whole request."""

    def __init__(self, receiver: Receiver, receive_call: Callable[[Call], Reply]) -> None:
        self._receiver = receiver
        self._receive = receive_call

    def __call__(self, environ: Mapping[str, Any], start_response: Start) -> Iterable[bytes]:
        reply = self._answer(environ)
        headers = [*reply.headers, ("content-length", str(len(reply.body)))]
        start_response(f"{reply.status} {_phrase(reply.status)}", headers)
        return [reply.body]

    def _answer(self, environ: Mapping[str, Any]) -> Reply:
        call = call_of(environ)
        length = length_of(environ)
        early = self._receiver.before_body(call, length)
        if early is not None:
            return early
        if length is None:
            return self._receiver.refuse(call.source, "no_body")
        body = environ["wsgi.input"].read(length)
        if len(body) != length:
            return self._receiver.refuse(
                call.source, "body_too_slow"
            )  # the sender hung up, or the server gave up waiting
        return self._receive(structs.replace(call, body=body))


def call_of(environ: Mapping[str, Any]) -> Call:
    """The head of a request, without its body."""
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
    return Call(
        method=environ["REQUEST_METHOD"],
        source=environ.get("PATH_INFO", "").strip("/"),
        query=query,
        url=url,
        headers=headers,
        peer=environ.get("REMOTE_ADDR", ""),
        body=b"",
    )


def length_of(environ: Mapping[str, Any]) -> int | None:
    """How long the body is by the sender's word; None where it does not say."""
    said = environ.get("CONTENT_LENGTH") or ""
    return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else None


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Answer"
