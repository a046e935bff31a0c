"""A request on its way: from `send` to the one call of `done`, over dials and hops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from surehook.ports.transport import Answer, Failure, Request
from surehook.wire.origin import Target

if TYPE_CHECKING:
    from surehook.wire.client import Client
    from surehook.wire.connection import Connection


class Opening:
    """How opening a connection goes: the phase it is in, and microseconds of those that are over."""

    __slots__ = ("connect_us", "dns_us", "phase", "tls_us")

    def __init__(self) -> None:
        self.phase: Failure = "dns_timeout"  # what a timeout now would be called
        self.dns_us: int | None = None
        self.connect_us: int | None = None
        self.tls_us: int | None = None


class Call:
    """ports.transport.Exchange. `target` and `headers` are those of the hop in hand."""

    __slots__ = (
        "_client", "_done", "connection", "deadline", "headers", "hops", "opening", "request", "started", "target",
        "task",
    )  # fmt: skip

    def __init__(
        self, client: Client, request: Request, done: Callable[[Answer], None], target: Target, now: float
    ) -> None:
        self._client = client
        self._done: Callable[[Answer], None] | None = done
        self.request = request
        self.target = target
        self.headers = request.headers + request.private
        self.started = now
        self.deadline = now + request.timeout_s
        self.hops = 0
        self.connection: Connection | None = None
        self.opening: Opening | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        return self._done is None

    @property
    def wants_body(self) -> bool:
        """Whether the answer's body is worth a wait: not that of an answer which may be followed elsewhere."""
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
        total_us = int((self._client.boot() - self.started) * 1e6)
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
