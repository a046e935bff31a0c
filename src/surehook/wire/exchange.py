"""A request on its way, from `send` to the one call of `done`, over dials and hops; and where it goes.

`CallOwner` and `Carrier` are the client and a connection as far as a call needs them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from surehook.core.http1.answer import AnswerReader
from surehook.core.url import NetworkPolicy, Url
from surehook.ports.resolver import Resolved
from surehook.ports.transport import Answer, Failure, Request
from surehook.wire.material import Own
from surehook.wire.wheel import Timed

# Asked for on every request: nothing is ever decompressed, so nothing should be compressed.
_ALWAYS = "accept-encoding: identity\r\n"


class CallOwner(Protocol):
    """The client."""

    def boot(self) -> float: ...
    def answered(self, call: WireCall, answer: Answer, head: bytes) -> None:
        """Take a complete answer to the hop in hand."""
        ...


class Carrier(Timed, Protocol):
    """A connection."""

    origin: Origin
    address: str
    transport: asyncio.Transport
    reader: AnswerReader
    call: WireCall | None
    session_key: tuple[object, ...] | None
    verified_at: float

    def carry(self, call: WireCall) -> None: ...
    def fail(self, failure: Failure, now: float) -> None: ...
    def fail_call(self, call: WireCall, failure: Failure) -> None: ...
    def has_news(self) -> bool: ...
    def close(self) -> None: ...


class Origin:
    """One scheme, host and port under one set of rules and one TLS setting, with its idle connections.

    `key` says all that; connections and TLS sessions of different keys are never exchanged.

    `addresses` are the judged addresses of `resolved`, the answer they came from; of a literal or a granted
    `localhost` they are known for good and `resolved` stays None.
    """

    __slots__ = ("__weakref__", "addresses", "idle", "is_known", "key", "own", "policy", "resolved", "url")

    def __init__(
        self,
        url: Url,
        policy: NetworkPolicy,
        known: tuple[str, ...],
        own: Own | None,
        key: tuple[object, ...],
    ) -> None:
        self.url = url
        self.policy = policy
        self.own = own
        self.key = key
        self.is_known = bool(known)
        self.addresses = known
        self.resolved: Resolved | None = None
        self.idle: list[Carrier] = []


class WireTarget:
    """A URL ready to be called. `refusal` is set on a stored URL that the rules of today refuse."""

    __slots__ = ("_url", "line", "origin", "read", "refusal", "tenant")

    def __init__(
        self, url: str, tenant: str, read: Url | None, origin: Origin | None, refusal: Failure | None
    ) -> None:
        self._url = url
        self.tenant = tenant
        self.read = read
        self.origin = origin
        self.refusal = refusal
        # The request line after the method, and the lines that never change.
        self.line = (
            b"" if read is None else f" {read.path} HTTP/1.1\r\nhost: {read.authority}\r\n{_ALWAYS}".encode()
        )

    @property
    def url(self) -> str:
        return self._url


class Opening:
    """Progress of opening a connection: the phase it is in, and microseconds of those that are over."""

    __slots__ = ("connect_us", "dns_us", "phase", "tls_us")

    def __init__(self) -> None:
        self.phase: Failure = "dns_timeout"  # the name of a timeout now
        self.dns_us: int | None = None
        self.connect_us: int | None = None
        self.tls_us: int | None = None


class WireCall:
    """ports.transport.Exchange. `target` and `headers` are those of the hop in hand."""

    __slots__ = (
        "_done", "connection", "deadline", "headers", "hops", "opening", "request", "sender", "started",
        "target", "task",
    )  # fmt: skip

    def __init__(
        self,
        sender: CallOwner,
        request: Request,
        done: Callable[[Answer], None],
        target: WireTarget,
        now: float,
    ) -> None:
        self.sender = sender
        self._done: Callable[[Answer], None] | None = done
        self.request = request
        self.target = target
        self.headers = request.headers + request.private
        self.started = now
        self.deadline = now + request.timeout_s
        self.hops = 0
        self.connection: Carrier | None = None
        self.opening: Opening | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self._done is None

    @property
    def wants_body(self) -> bool:
        """The answer's body is worth a wait: not that of an answer which may be followed elsewhere."""
        connection = self.connection
        status = None if connection is None else connection.reader.status
        return not self.request.redirects or status is None or not 300 <= status < 400

    def finish(self, answer: Answer) -> None:
        """Call `done`, once. Its errors are the caller's and must not harm the connection."""
        done, self._done = self._done, None
        if done is None:
            return
        self.connection = None
        try:
            done(answer)
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "the receiver of an answer failed", "exception": error}
            )

    def fail(self, failure: Failure) -> None:
        """Finish without a connection to speak of."""
        total_us = int((self.sender.boot() - self.started) * 1e6)
        answer = Answer(failure=failure, total_us=total_us, redirected=self.hops)
        if self.opening is not None:
            answer.dns_us, answer.connect_us, answer.tls_us = (
                self.opening.dns_us, self.opening.connect_us, self.opening.tls_us,
            )  # fmt: skip
        self.finish(answer)

    def fail_soon(self, failure: Failure) -> None:
        """Finish in the next turn of the loop, since `done` is never called from inside `send`."""
        asyncio.get_running_loop().call_soon(self.fail, failure)

    def abort(self) -> None:
        if self._done is None:
            return
        if self.task is not None:
            self.task.cancel()
        connection = self.connection
        if connection is not None and connection.call is self:
            asyncio.get_running_loop().call_soon(connection.fail_call, self, "aborted")
        else:
            self.fail_soon("aborted")
