"""Everything that the connections of one client have in common: a clock, a wheel of deadlines, a buffer, a pool."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from surehook.wire.contexts import Contexts
from surehook.wire.pool import ConnectionPool
from surehook.wire.sessions import SessionCache
from surehook.wire.settings import WireSettings
from surehook.wire.wheel import Wheel

BUFFER_BYTES = 64 * 1024  # read at a time, shared by all connections of the client


class SharedState:
    """Belongs to one client. `boot`: seconds on the clock that all deadlines are measured on."""

    def __init__(
        self, settings: WireSettings, boot: Callable[[], float], context: ssl.SSLContext | None
    ) -> None:
        self.settings = settings
        self.boot = boot
        self.wheel = Wheel(boot)
        self.pool = ConnectionPool(settings, self.wheel)
        self.buffer = memoryview(bytearray(BUFFER_BYTES))
        self.contexts = Contexts(ca_file=settings.ca_file, common=context, boot=boot)
        self.sessions = SessionCache(boot)
