"""The inbox as an ASGI application, to be mounted in Starlette, FastAPI or anything else: POST /SOURCE.

The body is read within three bounds, its size, one deadline for the whole of it, and a budget of bytes for all that are being
read, and not at all where the head is enough to refuse. A connection on which more of a refused body may still come is closed,
after that was read and thrown away within bounds: closed over bytes that nobody has read it would take the answer back.
"""

from __future__ import annotations

import asyncio
import re
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, MutableMapping
from typing import Any, TypeVar

from msgspec import structs

from surehook.core.errors import SettingsError
from surehook.core.limits import LINGER_BYTES
from surehook.core.sources.provider import Reply
from surehook.inbox.receive import IncomingRequest, Receiver

T = TypeVar("T")

BODY_S = 10.0  # for the whole body: 1 MiB over a slow mobile line; a trickle would hold memory for hours
CLOSE = (("connection", "close"),)
IN_FRONT = ", or put the inbox in front of them: inbox.before(app)"
# Bodies that are being read at the same moment, of all senders: nobody has looked at a signature yet. As much as may wait to be
# stored afterwards.
READING_BYTES = 64 * 1024 * 1024
SMALL_BYTES = 64 * 1024  # not counted: nearly all are, and they come whatever others send

Message = MutableMapping[str, Any]
Scope = Message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class _Gone(Exception):
    """The sender hung up before its body was whole."""


class _TooMuch(Exception):
    """The bodies that are being read are larger together than they may be."""


class _Reading:
    """The bytes of large bodies that are being read, within a budget. One that is alone may be larger."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0

    def has_room(self, size: int) -> bool:
        """Tell whether so many bytes more may be read."""
        return size <= SMALL_BYTES or not self._bytes or self._bytes + size <= self._most

    def take(self, size: int) -> None:
        """Count so many bytes of a body. Raises _TooMuch."""
        if self._bytes and self._bytes + size > self._most:
            raise _TooMuch
        self._bytes += size

    def give(self, size: int) -> None:
        """Forget so many bytes: their body was judged, or thrown away."""
        self._bytes -= size


class AsgiApp:
    """`receive_call` judges, stores and answers a whole request; `body_s` is the deadline for its body, in seconds."""

    def __init__(
        self,
        receiver: Receiver,
        receive_call: Callable[[IncomingRequest], Awaitable[Reply]],
        *,
        body_s: float = BODY_S,
    ) -> None:
        self._body_s = body_s
        self._receiver = receiver
        self._receive = receive_call
        self._reading = _Reading(READING_BYTES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._other(scope, receive, send)
            return
        try:
            begun = await self._begun(scope, receive)
        except _Gone:
            return
        reply = begun if isinstance(begun, Reply) else await begun
        if CLOSE[0] in reply.headers:
            await self._close(receive, send, reply)
        else:
            await _send(send, reply)

    async def _begun(self, scope: Scope, receive: Receive) -> Reply | Awaitable[Reply]:
        """Begin a coroutine: its answer at once, or the rest to be awaited."""
        call = _call(scope)
        length = _length(call)
        early = self._receiver.before_body(call, length)
        if early is not None:
            return early if call.method == "GET" else _closing(early)
        if length is not None and not self._reading.has_room(length):
            return _closing(self._receiver.refuse(call.source, "overloaded"))
        parts: list[bytes] = []
        try:
            most = self._receiver.body_bytes(call.source)
            body = await _within(self._body_s, _body(receive, most, self._reading, parts))
        except _TooMuch:
            return _closing(self._receiver.refuse(call.source, "overloaded"))
        except _Gone:
            self._note_missing(call.source, parts)
            raise
        except TimeoutError:
            self._note_missing(call.source, parts)
            return _closing(self._receiver.refuse(call.source, "body_too_slow"))
        if body is None:
            return _closing(self._receiver.refuse(call.source, "too_large"))
        if length is not None and len(body) != length:
            # A server sees to it that they are the same.
            self._receiver.note_changed(call.source, len(body), length, IN_FRONT)
            if not body:
                return self._receiver.refuse(call.source, "not_set_up")
        return self._receive(structs.replace(call, body=body))

    def _note_missing(self, source: str, parts: list[bytes]) -> None:
        """Tell of a body of which nothing came: most often its sender sent it, waited, and gave up, and a middleware has it."""
        if not any(parts):
            self._receiver.note_missing(source, IN_FRONT)

    async def _close(self, receive: Receive, send: Send, reply: Reply) -> None:
        """Answer, and end the answer when the sender has sent all, or enough: a server closes the connection then."""
        await _send(send, reply, more_body=True)
        try:
            async with asyncio.timeout(self._body_s):
                await _body(receive, LINGER_BYTES, None, [])
        except TimeoutError:
            pass
        except _Gone:
            return
        await send({"type": "http.response.body", "body": b""})

    async def _other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is no HTTP: a server asks for a lifespan when the inbox stands alone; websockets are refused."""
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1000})


class Before:
    """The inbox in front of an application: what lies under `path` is the inbox's, everything else the application's, its
    lifespan too. So no middleware of the application reads, bounds or slows what is received."""

    def __init__(self, inbox: AsgiApp, app: App, path: str) -> None:
        if re.fullmatch(r"(/[^/?#]+)+", path) is None:
            raise SettingsError("path", "a path like /hooks, without a slash at its end")
        self._inbox, self._app, self._path = inbox, app, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path, root = scope["path"], scope.get("root_path", "")
            at = (root if path.startswith(root) else "") + self._path
            if path.startswith(at) and path[len(at) : len(at) + 1] in ("", "/"):
                await self._inbox({**scope, "root_path": at}, receive, send)
                return
        await self._app(scope, receive, send)


def _call(scope: Scope) -> IncomingRequest:
    headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    inside = path[len(root) :] if root and path.startswith(root) else path
    query = scope.get("query_string", b"").decode("latin-1")
    client = scope.get("client")
    host = next((value for name, value in headers if name == "host"), "")
    url = f"{scope.get('scheme', 'http')}://{host}{path}" + (f"?{query}" if query else "")
    return IncomingRequest(
        method=scope["method"],
        source=inside.strip("/"),
        query=query,
        url=url,
        headers=headers,
        peer=client[0] if client else "",
        body=b"",
    )


def _length(call: IncomingRequest) -> int | None:
    """Read the sender's content length; a server has refused what is no number, and the body is counted in any case."""
    said = next((value for name, value in call.headers if name == "content-length"), "")
    return int(said) if said.isascii() and said.isdigit() and len(said) < 20 else None


async def _within(seconds: float, reading: Coroutine[object, None, T]) -> T:
    """`asyncio.timeout`, but no timer for what is there at once: most bodies come with their heads. Raises TimeoutError."""
    try:
        waits_for = reading.send(None)
    except StopIteration as end:
        whole: T = end.value
        return whole
    async with asyncio.timeout(seconds):
        return await _going_on(reading, waits_for)


@types.coroutine
def _going_on(reading: Coroutine[object, None, T], waits_for: Any) -> Generator[object, object, T]:
    """Await the rest of a coroutine that has begun."""
    while True:
        wrong: BaseException | None = None
        try:
            yield waits_for
        except BaseException as error:
            wrong = error
        try:
            waits_for = reading.send(None) if wrong is None else reading.throw(wrong)
        except StopIteration as end:
            whole: T = end.value
            return whole


async def _body(receive: Receive, most: int, reading: _Reading | None, parts: list[bytes]) -> bytes | None:
    """Read the whole body, in `parts`; None as soon as it is larger than that. Without `reading` it is thrown away. Raises
    _TooMuch, _Gone."""
    size = counted = 0
    try:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise _Gone
            part = message.get("body", b"")
            size += len(part)
            if size > most:
                return None
            if reading is not None:
                if size > SMALL_BYTES:
                    reading.take(size - counted)
                    counted = size
                parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        if counted and reading is not None:
            reading.give(counted)


def _closing(reply: Reply) -> Reply:
    return structs.replace(reply, headers=(*reply.headers, *CLOSE))


async def _send(send: Send, reply: Reply, *, more_body: bool = False) -> None:
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers]
    headers.append((b"content-length", str(len(reply.body)).encode()))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.body, "more_body": more_body})
