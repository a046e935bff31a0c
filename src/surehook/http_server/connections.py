"""Every open connection, in a line by what it waits for; each line is in the order of arrival.

    idle      between two requests
    heads     a head has begun, or the connection has and no byte has come
    bodies    a body is wanted and has not ended
    working   the application has the request
    answers   bytes of an answer are not taken yet
    ending    refused or answered for good; what still comes is read and thrown away

Time is a number of ticks. A tick that comes late is one tick all the same, so a process that stood still does not
charge it to its callers. Whoever has waited too long is found at the head of a line: a tick costs what it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Protocol

from surehook.core import limits
from surehook.http_server import refusals
from surehook.http_server.bounds import ByteBudget, ServerBounds
from surehook.ports.telemetry import Telemetry

Line = dict["TrackedConnection", int]  # connection → the tick at which it entered

TELL_TICKS = 60  # between two log lines about refusals of one reason


class TrackedConnection(Protocol):
    """A connection, as far as those who count all of them need it."""

    line: Line

    @property
    def body_received(self) -> int: ...
    def is_behind(self, age: int) -> bool: ...
    def refuse(self, problem: Exception, reason: str) -> None: ...
    def unsent_moved(self) -> int: ...
    def end_late_head(self) -> None: ...
    def close_idle(self) -> None: ...
    def abort(self) -> None: ...


class Connections:
    """All connections, the bytes that they hold, and refusals (`refused`, by reason, since the start)."""

    def __init__(self, bounds: ServerBounds, telemetry: Telemetry) -> None:
        self.bounds = bounds
        self.budget = ByteBudget(bounds.body_bytes)
        self.tick = 0
        self.idle: Line = {}
        self.heads: Line = {}
        self.bodies: Line = {}
        self.working: Line = {}
        self.answers: Line = {}
        self.ending: Line = {}
        self.open = 0
        self.partial_heads_bytes = 0
        self.unsent_bytes = 0
        self.refused: Counter[str] = Counter()
        self.on_empty: Callable[[], None] | None = None
        self._telemetry = telemetry
        self._told: Counter[str] = Counter()
        self._told_at: dict[str, int] = {}
        self._shed_at = -1

    # -- coming and going -------------------------------------------------------------------------------

    def admit(self, connection: TrackedConnection) -> bool:
        """Take a new connection in; True if there was room, or could be made."""
        self.open += 1
        self.heads[connection] = self.tick
        connection.line = self.heads
        return self.open <= self.bounds.connections or self._make_room(connection)

    def leave(self, connection: TrackedConnection) -> None:
        """Forget a connection that has ended."""
        del connection.line[connection]
        self.open -= 1
        if self.open == 0 and self.on_empty is not None:
            self.on_empty()

    def move(self, connection: TrackedConnection, line: Line) -> None:
        """Put a connection at the end of a line."""
        del connection.line[connection]
        line[connection] = self.tick
        connection.line = line

    def all(self) -> list[TrackedConnection]:
        """Every open connection."""
        lines = (self.idle, self.heads, self.bodies, self.working, self.answers, self.ending)
        return [connection for line in lines for connection in line]

    def _make_room(self, newcomer: TrackedConnection) -> bool:
        """End the connection that matters least: one of many that are ending anyway, else the oldest of those that wait for a
        request or of those that wait for the rest of a head, whichever are more."""
        if len(self.ending) > limits.CONNECTIONS_REFUSED:
            next(iter(self.ending)).abort()
            return True
        line = self.heads if len(self.heads) > len(self.idle) else self.idle
        oldest = next(iter(line), newcomer)
        if oldest is newcomer:
            return False
        self.refused["evicted"] += 1
        oldest.abort()
        return True

    # -- bytes ------------------------------------------------------------------------------------------

    def hold_head(self, count: int) -> None:
        """Count bytes of heads that have not ended; beyond the bound the oldest of them are given up."""
        self.partial_heads_bytes += count
        while self.partial_heads_bytes > self.bounds.partial_heads_bytes and len(self.heads) > 1:
            self.refused["partial_heads"] += 1
            next(iter(self.heads)).abort()

    def reserve(self, count: int, *, of: int) -> bool:
        """Take bytes of the budget for a body of so many. If there is no room, bodies whose pace is too slow to be complete in
        time are ended to make it."""
        if self.budget.take(count, of=of):
            return True
        if self._shed_at == self.tick:
            return False
        self._shed_at = self.tick
        for connection, since in list(self.bodies.items()):
            age = self.tick - since
            if age > 1 and connection.is_behind(age):
                connection.refuse(refusals.body_too_slow(), "body_timeout")
        return self.budget.take(count, of=of)

    def hold_unsent(self, connection: TrackedConnection, count: int) -> None:
        """Count bytes that a caller has not taken; beyond the bound the slowest callers are given up."""
        self.unsent_bytes += count
        while self.unsent_bytes > self.bounds.unsent_bytes:
            slowest = next(iter(self.answers))
            if slowest is connection and len(self.answers) == 1:
                return  # one answer alone may be larger than the bound
            self.refused["slow_reader"] += 1
            slowest.abort()

    # -- time -------------------------------------------------------------------------------------------

    def pass_tick(self) -> None:
        """Advance by a second: end connections whose time is over, and report refusals."""
        self.tick += 1
        bounds = self.bounds
        for connection in self._older(self.idle, bounds.idle):
            connection.close_idle()
        for connection in self._older(self.heads, bounds.head):
            connection.end_late_head()
        for connection, since in list(self.bodies.items()):
            age = self.tick - since
            if age > bounds.body or (
                age > bounds.body_grace and connection.body_received < age * limits.BODY_RATE_BYTES
            ):
                connection.refuse(refusals.body_too_slow(), "body_timeout")
        for connection in self._older(self.answers, bounds.answer):
            if connection.unsent_moved() < bounds.answer * limits.BODY_RATE_BYTES:
                self.refused["slow_reader"] += 1
                connection.abort()
            else:
                self.move(connection, self.answers)
        for connection in self._older(self.ending, bounds.linger):
            connection.abort()
        self._tell()

    def _older(self, line: Line, ticks: int) -> list[TrackedConnection]:
        found = []
        for connection, since in line.items():
            if self.tick - since <= ticks:
                break
            found.append(connection)
        return found

    def _tell(self) -> None:
        """Log refusals: at once when they begin, then once in a while with their number."""
        for reason, count in self.refused.items():
            new = count - self._told[reason]
            if new and self.tick - self._told_at.get(reason, -TELL_TICKS) >= TELL_TICKS:
                self._told[reason] = count
                self._told_at[reason] = self.tick
                self._telemetry.fact("http.refused", reason=reason, count=new, connections=self.open)
