"""One connection: a request out, an answer in, and again if the answer was clean.

At any moment a connection is opening, carries one exchange, or is idle; `due` is the moment at which that
has lasted too long. Bytes that come while no exchange is carried mean that the peer does not keep to one
answer per request: the connection is closed, since what comes next could be taken for another's answer.
"""

from __future__ import annotations

import asyncio
import select
from typing import cast

from surehook.core.http1.answer import BODY, DONE, HEAD, AnswerReader
from surehook.core.http1.answer_head import kept_headers
from surehook.ports.transport import Answer, Failure
from surehook.wire import causes
from surehook.wire.exchange import Origin, WireCall
from surehook.wire.shared import SharedState
from surehook.wire.wheel import NEVER

EARLY_BYTES = 16 * 1024  # kept of what a peer says before it was asked, to name the trouble


class Connection(asyncio.BufferedProtocol):
    """Reads through one buffer of the client, so that the loop never reads more than that at a time."""

    __slots__ = (
        "_early", "_first_byte", "_is_decided", "_listener", "_poll", "_shared", "address", "alarm", "call",
        "due", "has_answered", "is_fit", "origin", "reader", "refusal", "session_key", "transport",
        "verified_at",
    )  # fmt: skip

    def __init__(self, shared: SharedState, origin: Origin, address: str) -> None:
        self._shared = shared
        self.origin = origin
        self.address = address
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.reader = AnswerReader()
        self.call: WireCall | None = None
        self.due = self.alarm = NEVER
        self.has_answered = False
        self.is_fit = True  # open as far as we know, and nothing odd happened
        self._early = b""
        self._poll: select.poll | None = None
        self._listener: asyncio.Future[None] | None = None
        self._first_byte = 0.0
        self._is_decided = False  # the final head is complete
        self.refusal: Failure | None = None  # TLS of the other side refused us before a call was carried
        self.session_key: tuple[object, ...] | None = None  # of TLS; see sessions.py
        self.verified_at = 0.0  # when the full handshake was that its TLS rests on

    # -- the loop calls ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._shared.pool.open.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._shared.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._shared.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        call = self.call
        if call is None:
            self._unasked(data)
            return
        reader = self.reader
        if reader.phase == DONE:
            return
        now = self._shared.boot()
        if not self._first_byte:
            self._first_byte = now
        phase = reader.feed(data)
        if phase == HEAD:
            return
        if not self._is_decided:
            # The wheel looks in ticks; the deadline does not. What came while we stood still may have come in time.
            if now > call.deadline and not self._shared.wheel.excuses(call.deadline, now):
                self.fail("timeout", now)
                return
            self._is_decided = True
            self.due = min(call.deadline, now + self._shared.settings.body_wait_s)  # once: drips gain no time
            if phase == BODY:
                self._shared.wheel.watch(self)
        if phase == BODY:
            if call.wants_body and not self.transport.get_write_buffer_size():
                return
            reader.cut()  # answered before all was sent, or to be followed elsewhere
        if len(data) == len(self._shared.buffer):
            reader.reusable = False  # a full buffer: more may wait behind it, unseen
        self._settle(now)

    def eof_received(self) -> bool:
        self._ended("eof")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._shared.pool.open.discard(self)
        failure = "eof" if exc is None else causes.of_loss(exc)
        if failure == "tls_client_certificate":
            self.refusal = failure
        self._ended(failure)

    def expire(self, now: float) -> None:
        if self.call is None:
            self.close()
        elif self._is_decided:
            self.reader.cut()
            self._settle(now)
        else:
            self.fail("timeout", now)

    # -- the client calls -------------------------------------------------------------------------------

    def carry(self, call: WireCall) -> None:
        """Send the request. The step that writes its first byte is also the one that asks for permission."""
        if self._early:
            self._refuse_early(call)
            return
        request = call.request
        if request.permit is not None and not request.permit():
            self._shared.pool.put(self, self._shared.boot())
            call.fail_soon("aborted")
            return
        self.call = call
        call.connection = self
        self.due = call.deadline
        if self.due < self.alarm:
            self._shared.wheel.watch(self)
        body = request.body
        self.transport.write(
            b"%b%b%bcontent-length: %d\r\n\r\n%b"
            % (request.method, call.target.line, call.headers, len(body), body)
        )

    def fail(self, failure: Failure, now: float) -> None:
        """End what is carried without a status."""
        call = self.call
        if call is None:
            return
        unknown = self._body_has_left(len(call.request.body))
        self.call = None
        self.close()
        call.finish(self._answer(call, now, failure=failure, unknown=unknown))

    def fail_call(self, call: WireCall, failure: Failure) -> None:
        """`fail`, if that call is still the one carried."""
        if self.call is call:
            self.fail(failure, self._shared.boot())

    def close(self) -> None:
        """Drop the connection at once. TLS says no farewell: a peer could take half a minute to answer it."""
        self.is_fit = False
        self.due = NEVER
        self._shared.pool.forget(self)
        if self.session_key is not None:
            self._part()
        if self.transport is not None:
            self.transport.abort()

    async def ask_first(self, request: bytes, limit: int) -> bytes:
        """Write something before any call is carried and return the head that comes back, `limit` bytes at most.

        For the proxy's CONNECT alone. Raises ConnectionResetError where the connection ends before, or what comes is
        not HTTP.
        """
        self.transport.write(request)
        while b"\r\n\r\n" not in self._early:
            is_http = b"HTTP/1.".startswith(self._early[:7])
            if not self.is_fit or not is_http or len(self._early) >= limit:
                raise ConnectionResetError
            self._listener = asyncio.get_running_loop().create_future()
            await self._listener
        heard, self._early = self._early, b""
        return heard

    @property
    def has_spoken_first(self) -> bool:
        """True if the peer sent something before a request."""
        return bool(self._early)

    def has_news(self) -> bool:
        """True if bytes or an end wait in the kernel that the loop has not reported yet.

        Bytes that came before a request are no answer to it, and an end seen now means that nothing needs to be written.
        """
        if self._poll is None:
            socket = self.transport.get_extra_info("socket")
            if socket is None:  # a transport without the kernel under it: it may know
                tells = self.transport.get_extra_info("has_news")
                return tells is not None and bool(tells())
            self._poll = select.poll()
            self._poll.register(socket.fileno(), select.POLLIN)
        return bool(self._poll.poll(0))

    def _part(self) -> None:
        """Keep the TLS session where an answer came over it, drop it where none did."""
        if self.has_answered:
            self._shared.sessions.keep(self)
        elif self.session_key is not None:
            self._shared.sessions.forget(self.session_key)
        self.session_key = None

    # -- inside -----------------------------------------------------------------------------------------

    def _unasked(self, data: bytes) -> None:
        if self.due == NEVER and self.is_fit:  # just opened: a banner, or an early answer
            self._early = (self._early + data)[:EARLY_BYTES]
            self._wake()
        else:
            self.close()

    def _refuse_early(self, call: WireCall) -> None:
        """Fail a call whose peer spoke before it was asked. No such answer is valid (RFC 9112 section 9.2), whatever it says: a
        200 would call an event delivered of which no byte has left."""
        failure = self.early_failure()
        self.close()
        call.fail_soon(failure)

    def early_failure(self) -> Failure:
        """The name for what the peer sent before it was asked; `connect_reset` if it sent nothing and left."""
        if not self._early:
            return "connect_reset"
        self.reader.feed(self._early)
        return self.reader.failure or "bad_framing"

    def _wake(self) -> None:
        if self._listener is not None and not self._listener.done():
            self._listener.set_result(None)

    def _ended(self, failure: Failure) -> None:
        call, reader = self.call, self.reader
        if call is None:
            self.close()
            self._wake()
            return
        now = self._shared.boot()
        if reader.phase != DONE:
            reader.end()
        if reader.status is not None:
            self._settle(now)
        else:
            self.fail(reader.failure or failure, now)

    def _settle(self, now: float) -> None:
        """Hand the complete answer over, and keep the connection if it is clean."""
        call, reader = self.call, self.reader
        assert call is not None
        if reader.failure is not None:
            self.fail(reader.failure, now)
            return
        answer = self._answer(call, now)
        self.call = None
        self.has_answered = True
        if reader.reusable and self.is_fit and not self.transport.get_write_buffer_size():
            self._first_byte = 0.0
            self._is_decided = False
            self._shared.pool.put(self, now)
            head = reader.head
            reader.reset()
        else:
            head = reader.head
            self.close()
        call.sender.answered(call, answer, head)

    def _answer(
        self, call: WireCall, now: float, *, failure: Failure | None = None, unknown: bool = False
    ) -> Answer:
        reader, opening = self.reader, call.opening
        if failure is not None:  # what came too late, or never became an answer, is not shown as one
            self.reader = reader = AnswerReader()
        answer = Answer(
            reader.status,
            failure,
            unknown,
            kept_headers(reader.head),
            reader.body,
            reader.truncated,
            self.address,
            None,
            None,
            None,
            int((self._first_byte - call.started) * 1e6) if self._first_byte else None,
            int((now - call.started) * 1e6),
            call.hops,
        )
        if opening is not None:
            answer.dns_us, answer.connect_us, answer.tls_us = (
                opening.dns_us,
                opening.connect_us,
                opening.tls_us,
            )
        return answer

    def _body_has_left(self, size: int) -> bool:
        """True if a byte of the body may have been written; also after a reset, when the transport no longer knows."""
        return self.transport.get_write_buffer_size() < max(size, 1)
