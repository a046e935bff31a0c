"""Resolve, judge, dial, compare the peer, secure: one connection for one call, under the call's deadlines.

The order is the guard's: nothing is dialled before every address is judged, nothing is written before the
peer's address is the judged one.
"""

from __future__ import annotations

import asyncio
import ssl

from surehook.core import address
from surehook.ports.resolver import Resolver
from surehook.ports.transport import Failure
from surehook.wire import causes, proxy
from surehook.wire.connection import Connection
from surehook.wire.contexts import Unusable
from surehook.wire.dial import Dialer
from surehook.wire.exchange import Carrier, Opening, Origin, WireCall
from surehook.wire.guard import Guard
from surehook.wire.race import race
from surehook.wire.shared import SharedState
from surehook.wire.wheel import STOOD_S

_DNS: dict[str, Failure] = {
    "dns_nxdomain": "dns_nxdomain",
    "dns_timeout": "dns_timeout",
    "no_resources": "no_resources",
}


READING_TURNS = 8  # of the loop: poll, read, the socket's end, the end of TLS, and as many to spare


class Stopped(Exception):
    """Ends the opening; `failure` is the name of the reason."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure: Failure = failure


class Opener:
    """Opens connections for a client. `connection` makes one that is not open yet."""

    def __init__(
        self,
        shared: SharedState,
        guard: Guard,
        resolver: Resolver,
        dialer: Dialer,
        *,
        connection: type[Connection] = Connection,
    ) -> None:
        self._shared = shared
        self._guard = guard
        self._connection = connection
        self._proxy = None if shared.settings.proxy is None else proxy.read(shared.settings.proxy)
        self._resolver = resolver
        self._dialer = dialer

    async def open(self, call: WireCall, origin: Origin) -> Carrier | None:
        """A connection ready to carry `call`, fresh or idle; None where the call was finished with a failure."""
        opening = call.opening = Opening()
        budget_s = min(call.request.connect_timeout_s, call.deadline - self._shared.boot())
        try:
            async with asyncio.timeout(budget_s) as limit:
                await self._judge(opening, origin)
                idle = self._shared.pool.take(origin)
                if idle is not None:
                    return idle
                return await self._dial(opening, origin, call.target.tenant)
        except TimeoutError:
            # Nobody knows what the receiver did while we stood still, and nothing was sent: as if it had not begun.
            call.fail("aborted" if not call.hops and _stood_still(limit) else opening.phase)
        except (Stopped, Unusable) as stop:
            call.fail(stop.failure)
        return None

    async def _judge(self, opening: Opening, origin: Origin) -> None:
        """Set the origin's addresses from one fresh answer."""
        if origin.is_known:
            return
        started = self._shared.boot()
        resolved = await self._resolver.resolve(origin.url.host)
        opening.dns_us = self._since(started)
        if not resolved.addresses:
            raise Stopped(_DNS.get(resolved.failure or "", "dns_failure"))
        if resolved is not origin.resolved:
            origin.addresses = self._guard.judge(resolved.addresses, origin.policy)
            origin.resolved = resolved
        if not origin.addresses:
            raise Stopped("address_forbidden")

    async def _dial(self, opening: Opening, origin: Origin, tenant: str) -> Connection:
        context = None
        if origin.url.scheme == "https":
            opening.phase = "no_resources"  # the wait for a turn is ours
            context = await self._shared.contexts.in_turn(origin.own, tenant)
        started = self._shared.boot()
        opening.phase = "connect_timeout" if self._proxy is None else "proxy_failure"
        connection = await race(
            origin.addresses, lambda judged: self._connect(origin, judged), lambda loser: loser.close()
        )
        opening.connect_us = self._since(started)
        if context is not None:
            started = self._shared.boot()
            opening.phase = "tls_timeout"
            connection.session_key = (*origin.key, tenant, connection.address)
            await self._secure(connection, origin, context)
            opening.tls_us = self._since(started)
        if not connection.is_fit:
            raise Stopped(connection.refusal or connection.early_failure())
        return connection

    async def _connect(self, origin: Origin, judged: str) -> Connection:
        """One TCP connection to one judged address."""
        if not self._shared.pool.has_room():
            raise Stopped("no_resources")
        self._shared.pool.dialing += 1
        try:
            return await self._open(origin, judged)
        finally:
            self._shared.pool.dialing -= 1

    async def _open(self, origin: Origin, judged: str) -> Connection:
        connection = self._connection(self._shared, origin, judged)
        if self._proxy is not None:
            await self._tunnel(connection, self._proxy, judged, origin.url.port)
            return connection
        try:
            connection.transport = await self._dialer.connect(judged, origin.url.port, connection)
        except OSError as error:
            raise Stopped(causes.of_connect(error, judged)) from error
        self._compare(connection, judged, origin.url.port)
        return connection

    async def _tunnel(self, connection: Connection, via: proxy.Proxy, judged: str, port: int) -> None:
        """A connection to one judged address through the operator's proxy."""
        at = via.address
        if at is None:
            resolved = await self._resolver.resolve(via.host)
            at = address.canonical(resolved.addresses[0]) if resolved.addresses else None
            if at is None:
                raise Stopped("proxy_failure")
        if (at, via.port) == (judged, port):
            raise Stopped("address_forbidden")  # an endpoint that is the proxy itself
        try:
            connection.transport = await self._dialer.connect(at, via.port, connection)
            self._compare(connection, at, via.port)
            reply = await connection.ask_first(via.request(judged, port), proxy.REPLY_BYTES)
        except (OSError, Stopped) as error:
            connection.close()
            raise Stopped("proxy_failure") from error
        except BaseException:
            connection.close()
            raise
        refused = proxy.refusal(reply)
        if refused is not None:
            connection.close()
            raise Stopped(refused)

    async def _secure(self, connection: Connection, origin: Origin, context: ssl.SSLContext) -> None:
        sessions, key = self._shared.sessions, connection.session_key
        assert key is not None
        earlier = sessions.find(key, context)
        connection.verified_at = self._shared.boot()
        try:
            if connection.has_spoken_first:
                raise Stopped("tls_protocol")
            connection.transport = await self._dialer.secure(
                connection.transport,
                connection,
                context,
                origin.url.host,
                None if earlier is None else earlier[0],
            )
        except (ssl.SSLError, OSError) as error:
            connection.close()
            raise Stopped(causes.of_tls(error)) from error
        except BaseException:
            connection.close()
            raise
        await self._hear_refusal(connection)
        if earlier is not None:
            done = connection.transport.get_extra_info("ssl_object")
            if done is not None and done.session_reused:
                connection.verified_at = earlier[1]

    @staticmethod
    async def _hear_refusal(connection: Connection) -> None:
        """Let the loop read what is there. A near server that refuses our certificate in TLS 1.3 may have said so and reset
        the connection by now, and a write would meet the reset before anybody reads the reason."""
        for _ in range(READING_TURNS):
            if not connection.is_fit or not connection.has_news():
                return
            await asyncio.sleep(0)

    @staticmethod
    def _compare(connection: Connection, judged: str, port: int) -> None:
        """Make sure that the peer is the one we dialled: a transparent proxy or odd routing could have put another there."""
        peer = connection.transport.get_extra_info("peername")
        if peer is not None and address.canonical(str(peer[0])) == judged and peer[1] == port:
            return
        was_fit = connection.is_fit
        connection.close()
        raise Stopped("peer_mismatch" if was_fit and peer is not None else "connect_reset")

    def _since(self, started: float) -> int:
        return int((self._shared.boot() - started) * 1e6)


def _stood_still(limit: asyncio.Timeout) -> bool:
    """True if a limit ran out while the process stood still."""
    at = limit.when()
    return at is not None and asyncio.get_running_loop().time() - at > STOOD_S
