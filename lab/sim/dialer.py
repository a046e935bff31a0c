"""The wire client's way to the simulated network."""

from __future__ import annotations

import asyncio

from lab.sim.loop import Process
from lab.sim.network import SimNetwork, SimTransport


class SimDialer:
    """The wire client's way to the network, for one process.

    TLS is a wait and a flag: encryption and certificates are the business of tests on real sockets.
    """

    def __init__(self, network: SimNetwork, process: Process) -> None:
        self._network = network
        self._process = process

    async def connect(self, address: str, port: int, protocol: asyncio.BaseProtocol) -> asyncio.Transport:
        assert isinstance(protocol, asyncio.Protocol | asyncio.BufferedProtocol)
        return await self._network.dial(self._process, address, port, protocol)

    async def secure(
        self,
        transport: asyncio.Transport,
        protocol: asyncio.BaseProtocol,
        context: object,
        name: str,
        session: object,
    ) -> asyncio.Transport:
        try:
            assert isinstance(transport, SimTransport)
            await asyncio.sleep(transport.wire.link.secure_s + 0.001 + 0.01 * self._network.chance.random())
        except asyncio.CancelledError:
            transport.abort()
            raise
        if transport.is_closing():
            raise ConnectionResetError
        transport.set_protocol(protocol)
        return transport
