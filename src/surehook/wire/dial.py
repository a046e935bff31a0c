"""The seam to the real network: one TCP connection to one address, and TLS on top of it.

A simulated network hands in another `Dialer`. The system's one resolves nothing: it is given an address
that was judged, and the kernel is given exactly that.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol

HANDSHAKE_S = 60.0  # asyncio insists on a bound of its own; the attempt's is always shorter


class Dialer(Protocol):
    async def connect(self, address: str, port: int, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
        """Open a TCP connection to an IP address and attach `protocol` (`connection_made` is called).

        The transport answers `get_extra_info("peername")`. Raises OSError. Cancelling closes the socket.
        """
        ...

    async def secure(
        self, transport: asyncio.Transport, protocol: asyncio.BaseProtocol, context: ssl.SSLContext, name: str
    ) -> asyncio.Transport:
        """Do the TLS handshake; returns the transport to write to from now on, with `protocol` attached
        (`connection_made` is not called again). `name` is the host the certificate must cover.

        Raises ssl.SSLError or OSError. Cancelling or failing closes the connection.
        """
        ...


class SystemDialer:
    """Dialer on the running loop."""

    async def connect(self, address: str, port: int, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_connection(lambda: protocol, address, port)
        return transport

    async def secure(
        self, transport: asyncio.Transport, protocol: asyncio.BaseProtocol, context: ssl.SSLContext, name: str
    ) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        try:
            secured = await loop.start_tls(
                transport, protocol, context, server_hostname=name, ssl_handshake_timeout=HANDSHAKE_S
            )
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise ConnectionResetError
        return secured
