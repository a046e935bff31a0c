"""The seam to the real network: one TCP connection to one address, and TLS on top of it.

A simulated network hands in another `Dialer`. The system's one resolves nothing: it is given an address
that was judged, and the kernel is given exactly that.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

HANDSHAKE_S = 60.0  # asyncio insists on a bound of its own; the attempt's is always shorter
GUISES = 64  # kept for the next handshakes, 20 KiB each


class Dialer(Protocol):
    async def connect(self, address: str, port: int, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
        """Open a TCP connection to an IP address and attach `protocol` (`connection_made` is called).

        The transport answers `get_extra_info("peername")`. Raises OSError. Cancelling closes the socket.
        """
        ...

    async def secure(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.BaseProtocol,
        context: ssl.SSLContext,
        name: str,
        session: ssl.SSLSession | None,
    ) -> asyncio.Transport:
        """Do the TLS handshake; returns the transport to write to from now on, with `protocol` attached
        (`connection_made` is not called again). `name` is the host the certificate must cover, `session` one of
        this context to go on from.

        Raises ssl.SSLError or OSError. Cancelling or failing closes the connection.
        """
        ...


class Guise(ssl.SSLContext):
    """Stands for a context in one handshake that goes on from a session.

    The loops make the SSL object themselves, ask only for an SSLContext, and have no place to hand a session in.
    """

    real: ssl.SSLContext
    session: ssl.SSLSession

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, server_side: bool = False,
                 server_hostname: str | bytes | None = None,
                 session: ssl.SSLSession | None = None) -> ssl.SSLObject:  # fmt: skip
        return self.real.wrap_bio(incoming, outgoing, server_side, server_hostname, session or self.session)


class SystemDialer:
    """Dialer on the running loop."""

    def __init__(self) -> None:
        self._guises: list[Guise] = []

    async def connect(self, address: str, port: int, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: protocol, address, port)
        return transport

    async def secure(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.BaseProtocol,
        context: ssl.SSLContext,
        name: str,
        session: ssl.SSLSession | None,
    ) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        shown = context if session is None else self._guise(context, session)
        try:
            secured = await loop.start_tls(
                transport, protocol, shown, server_hostname=name, ssl_handshake_timeout=HANDSHAKE_S
            )
        except BaseException:
            transport.abort()
            raise
        if isinstance(shown, Guise) and len(self._guises) < GUISES:
            del shown.real, shown.session
            self._guises.append(shown)
        if secured is None:
            raise ConnectionResetError
        return secured

    def _guise(self, context: ssl.SSLContext, session: ssl.SSLSession) -> Guise:
        guise = self._guises.pop() if self._guises else Guise(ssl.PROTOCOL_TLS_CLIENT)
        guise.real, guise.session = context, session
        return guise
