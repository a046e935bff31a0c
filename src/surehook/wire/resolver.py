"""Names to addresses: c-ares on the running loop, absolute names only, a short cache bounded by TTL.

Cached are answers, never verdicts. Search lists, host aliases and the resolver variables of the environment
are switched off: `metadata` must not become `metadata.google.internal` because of a line in resolv.conf.
The hosts file is read, and what it says is judged like everything else.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any

from surehook.core.errors import SettingsError
from surehook.ports.resolver import Resolved

KEPT_MAX_S = 30.0  # an address that moved is followed within this time, whatever its TTL says
NEGATIVE_S = 1.0  # spares a resolver the herd of a broken name; short enough for a name just made
NAMES = 10_000  # cached at once, least recently asked first to go
# The first try of one server; each further one waits twice as long. One lost packet, or a server that says nothing
# when asked for the other family, must leave time for the call within the shortest first attempt of a second.
QUERY_S = 0.5
TRIES = 4

_ANSWERS = 4_096  # more than fit into one DNS message


class CachingResolver:
    """The cache and the herd rule; `ask` does the asking and returns the answer with its TTL in seconds.

    All who ask for a name while it is being asked for get the same answer. `ask` never raises.
    """

    def __init__(
        self, boot: Callable[[], float], ask: Callable[[str], Awaitable[tuple[Resolved, float]]]
    ) -> None:
        self._boot = boot
        self._ask = ask
        self._kept: OrderedDict[str, tuple[Resolved, float]] = OrderedDict()
        self._asking: dict[str, asyncio.Task[Resolved]] = {}

    def cached(self, host: str) -> Resolved | None:
        found = self._kept.get(host)
        if found is None or found[1] <= self._boot():
            return None
        return found[0]

    async def resolve(self, host: str) -> Resolved:
        found = self.cached(host)
        if found is not None:
            return found
        task = self._asking.get(host)
        if task is None:
            task = self._asking[host] = asyncio.get_running_loop().create_task(self._look_up(host))
        return await asyncio.shield(task)

    async def close(self) -> None:
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_up(self, host: str) -> Resolved:
        try:
            resolved, ttl_s = await self._ask(host)
        finally:
            del self._asking[host]
        kept_s = min(ttl_s, KEPT_MAX_S) if resolved.addresses else NEGATIVE_S
        if kept_s > 0:
            self._kept[host] = resolved, self._boot() + kept_s
            self._kept.move_to_end(host)
            if len(self._kept) > NAMES:
                self._kept.popitem(last=False)
        return resolved


class DnsResolver(CachingResolver):
    """ports.Resolver on c-ares. `servers` replaces those of the system, as `address` or `address:port`."""

    def __init__(self, boot: Callable[[], float], *, servers: tuple[str, ...] = ()) -> None:
        super().__init__(boot, self._query)
        self._servers = servers
        self._channel: Any = None

    async def close(self) -> None:
        await super().close()
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    def _open(self) -> object:
        try:
            import aiodns
            import pycares
        except ImportError as error:
            raise SettingsError(
                "resolver", "aiodns is not installed", hint="pip install 'surehook[server]'"
            ) from error
        return aiodns.DNSResolver(
            nameservers=list(self._servers) or None,
            timeout=QUERY_S,
            tries=TRIES,
            flags=pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_NOALIASES,
        )

    async def _query(self, host: str) -> tuple[Resolved, float]:
        import socket

        import aiodns.error as errors

        try:
            if self._channel is None:
                self._channel = self._open()
            found = await self._channel.getaddrinfo(host, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM)
        except errors.DNSError as error:
            code = error.args[0] if error.args else None
            if code in (errors.ARES_ENOTFOUND, errors.ARES_ENODATA):
                return Resolved(failure="dns_nxdomain"), NEGATIVE_S
            if code == errors.ARES_ETIMEOUT:
                return Resolved(failure="dns_timeout"), NEGATIVE_S
            ours = code in (
                errors.ARES_ECONNREFUSED,
                errors.ARES_ENOMEM,
                errors.ARES_EFILE,
                errors.ARES_ENOTINITIALIZED,
            )
            return Resolved(failure="no_resources" if ours else "dns_failure"), NEGATIVE_S
        addresses = tuple(dict.fromkeys(_text(node.addr[0]) for node in found.nodes[:_ANSWERS]))
        if not addresses:
            return Resolved(failure="dns_nxdomain"), NEGATIVE_S
        return Resolved(addresses), float(min((node.ttl for node in found.nodes), default=0))


class ThreadResolver(CachingResolver):
    """ports.Resolver on the C library's getaddrinfo, in a thread: for systems whose names live outside DNS.

    It tells no TTL; answers are kept for 5 s.
    """

    KEPT_S = 5.0

    def __init__(self, boot: Callable[[], float]) -> None:
        super().__init__(boot, self._query)

    async def _query(self, host: str) -> tuple[Resolved, float]:
        import socket

        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host + ".", None, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            gone = error.errno in (socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME))
            return Resolved(failure="dns_nxdomain" if gone else "dns_failure"), NEGATIVE_S
        except OSError:
            return Resolved(failure="dns_failure"), NEGATIVE_S
        addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found[:_ANSWERS]))
        return Resolved(addresses), self.KEPT_S


def _text(found: bytes | str) -> str:
    return found.decode("ascii") if isinstance(found, bytes) else found
