"""Open connections: bounds on their number, and those that wait for another request."""

from __future__ import annotations

from surehook.wire.exchange import Carrier, Origin
from surehook.wire.settings import WireSettings
from surehook.wire.wheel import Wheel


class ConnectionPool:
    """Idle connections stand in their origin's stack (last in, first out: the warm one is used, the others age)
    and in one line over all origins, oldest first, from which room is made."""

    def __init__(self, settings: WireSettings, wheel: Wheel) -> None:
        self._settings = settings
        self._wheel = wheel
        self._idle: dict[Carrier, None] = {}
        self.open: set[Carrier] = set()
        self.dialing = 0  # connections that are being opened

    def take(self, origin: Origin) -> Carrier | None:
        """An idle connection to one of the origin's judged addresses; those to other addresses are closed."""
        idle = origin.idle
        while idle:
            connection = idle.pop()
            del self._idle[connection]
            # A transport may be closing before it says so: after a failed write it tells in the loop's next turn.
            if (
                connection.address in origin.addresses
                and not connection.transport.is_closing()
                and not connection.has_news()
            ):
                return connection
            connection.close()
        return None

    def put(self, connection: Carrier, now: float) -> None:
        """Keep a connection after a clean answer, or close it where there are enough."""
        idle = connection.origin.idle
        keep_s = self._settings.idle_s
        told = connection.reader.keep_s
        if told is not None:
            keep_s = min(keep_s, told - 1.0)  # the server closes at its own word; be gone a second before
        if len(idle) >= self._settings.idle_per_origin or keep_s <= 0:
            connection.close()
            return
        if len(self._idle) >= self._settings.idle_connections:
            next(iter(self._idle)).close()
        idle.append(connection)
        self._idle[connection] = None
        connection.due = now + keep_s
        if connection.due < connection.alarm:
            self._wheel.watch(connection)

    def forget(self, connection: Carrier) -> None:
        """Take a connection out of the idle ones, where it is among them."""
        if connection in self._idle:
            del self._idle[connection]
            connection.origin.idle.remove(connection)

    def has_room(self) -> bool:
        """One more connection may be opened; an idle one is closed for it where need be."""
        if len(self.open) + self.dialing < self._settings.connections:
            return True
        if not self._idle:
            return False
        next(iter(self._idle)).close()
        return True

    def close(self) -> None:
        for connection in list(self.open):
            connection.close()
