"""Rules and bounds of the client. Every bound has its unit and reason."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from surehook.config import Settings


class WireSettings(Struct, frozen=True, kw_only=True):
    """Networks are CIDR texts. Nothing here is read from the environment by the client itself."""

    allow_http: bool = False
    allow_networks: tuple[str, ...] = ()  # callable although not public, for every tenant
    tenant_networks: Mapping[str, tuple[str, ...]] = {}  # the same, for one tenant
    deny_networks: tuple[str, ...] = ()  # never callable; our own public addresses belong here
    nat64_prefixes: tuple[str, ...] = ()
    allow_ports: frozenset[int] = frozenset()
    own_hosts: frozenset[str] = frozenset()
    ca_file: str | None = None  # PEM; None: the system's
    proxy: str | None = None  # egress proxy, `http://[user:password@]host:port`

    idle_s: float = 4.0  # a connection waits this long for reuse; common servers close at 5 s
    idle_per_origin: int = 64  # twice the default share of an endpoint
    idle_connections: int = 1_024
    connections: int = 2_048  # open at once; above both lanes' slots, below a common limit of 4,096 files
    body_wait_s: float = 1.0  # after complete headers the body may take this long, never beyond the deadline

    @classmethod
    def of(cls, settings: Settings, *, calls: int) -> WireSettings:
        """The client of a server that may have so many `calls` under way, beside which idle connections stay."""
        default = cls()
        return cls(
            allow_http=settings.allow_http,
            allow_networks=settings.allow_networks,
            tenant_networks=settings.tenant_networks,
            deny_networks=settings.deny_networks,
            nat64_prefixes=settings.nat64_prefixes,
            own_hosts=frozenset(settings.own_hosts),
            ca_file=settings.ca_file,
            proxy=settings.proxy,
            connections=max(default.connections, calls + default.idle_connections),
        )
