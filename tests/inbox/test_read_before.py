"""A body that something in front of the inbox has read: the log of the receiver says so, since its sender can mend nothing.

Of a body that was written anew with the same length nobody can tell: its signature fails.
"""

from __future__ import annotations

import asyncio
import io
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.routing import Mount

from surehook.inbox import Inbox
from surehook.verify import sign
from tests.inbox.house import NOW, SECRET, Clock, partner

BODY = b'{"type": "document.signed"}'
MISSING = "a request to partner came without its body"
CHANGED = "a request to partner came with a body of %d bytes, and its headers announce 27"


@pytest.fixture
def inbox(tmp_path: Path) -> Iterator[Inbox]:
    made = Inbox(f"sqlite:///{tmp_path / 'inbox.db'}", [partner()], clock=Clock())
    made.create_tables()
    yield made
    made.close()


class Reads:
    """A middleware that reads the body, and hands on what it makes of it; None: the server's own `receive`, which has no more."""

    def __init__(self, app: Any, again: Callable[[bytes], bytes] | None) -> None:
        self.app, self.again = app, again

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", scope["type"] == "http"
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]

        async def again() -> Any:
            assert self.again is not None
            return {"type": "http.request", "body": self.again(body)}

        await self.app(scope, receive if self.again is None else again, send)


async def uses_up(request: Any, call_next: Any) -> Any:
    async for _ in request.stream():
        pass
    return await call_next(request)


async def looks(request: Any, call_next: Any) -> Any:
    await request.body()
    return await call_next(request)


async def answered(app: Any) -> bytes:
    """The answer of a server to one message."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", http="h11"))
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        signed = sign(SECRET, "evt_1", BODY, timestamp=NOW // 1000)
        lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
        head = f"POST /hooks/partner HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(BODY)}\r\n{lines}\r\n"
        writer.write(head.encode() + BODY)
        answer = await reader.read()
        writer.close()
        server.should_exit = True
        await serving
    return answer


def reply(answer: bytes) -> tuple[int, str | None]:
    """Status and code."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["code"] if body else None


@pytest.mark.parametrize(
    ("middleware", "options", "status", "code", "said"),
    [
        (Reads, {"again": lambda body: body}, 200, None, None),
        (BaseHTTPMiddleware, {"dispatch": looks}, 200, None, None),
        (BaseHTTPMiddleware, {"dispatch": uses_up}, 500, "not_set_up", CHANGED % 0),
        (Reads, {"again": lambda body: b""}, 500, "not_set_up", CHANGED % 0),
        (Reads, {"again": None}, 408, "body_too_slow", MISSING),
        (Reads, {"again": lambda body: body.replace(b" ", b"")}, 401, "bad_signature", CHANGED % 26),
        (Reads, {"again": lambda body: body.replace(b": ", b" :")}, 401, "bad_signature", None),
    ],
    ids=["hands on", "looks", "uses up", "empties", "reads", "writes anew", "writes anew, as long"],
)
def test_a_body_that_a_middleware_of_asgi_has_read(inbox, caplog, middleware, options, status, code, said):
    app = Starlette(routes=[Mount("/hooks", inbox.asgi(body_s=0.1 if status == 408 else 10))])
    app.add_middleware(middleware, **options)
    assert reply(asyncio.run(answered(app))) == (status, code)
    told = [one.getMessage() for one in caplog.records if "inbox.before(app)" in one.getMessage()]
    assert [one.partition(":")[0] for one in told] == ([] if said is None else [said])
    before = inbox.before(app, "/hooks")
    assert reply(asyncio.run(answered(before)))[0] == 200, "what it says to do helps"


def test_a_sender_that_gave_up_waiting_for_a_body_that_was_read_is_told_of(inbox, caplog):
    async def gone() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError("nobody is there")

    scope = {"type": "http", "method": "POST", "path": "/partner", "headers": [(b"content-length", b"27")]}
    for _ in range(3):
        asyncio.run(inbox.asgi()(scope, gone, send))
    assert caplog.text.count(MISSING) == 1, "once a minute"


def test_a_sender_that_hangs_up_within_its_body_is_none(inbox, caplog):
    parts = iter([{"type": "http.request", "body": BODY[:5], "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(parts)

    async def send(message: Any) -> None: ...

    scope = {"type": "http", "method": "POST", "path": "/partner", "headers": [(b"content-length", b"27")]}
    asyncio.run(inbox.asgi()(scope, receive, send))
    assert MISSING not in caplog.text


@pytest.mark.parametrize(("left", "said"), [(b"", True), (BODY[:5], False)])
def test_a_body_that_something_in_front_of_wsgi_has_read(inbox, caplog, left, said):
    answer = []
    with closing(io.BytesIO(left)) as stream:
        environ = {
            "REQUEST_METHOD": "POST", "PATH_INFO": "/partner", "CONTENT_LENGTH": "27", "wsgi.input": stream,
        }  # fmt: skip
        inbox.wsgi()(environ, lambda status, headers: answer.append(status))
    assert answer == ["408 Request Timeout"]
    assert (MISSING in caplog.text) == said
