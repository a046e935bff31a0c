"""Readers of the settings about reach: networks, networks by tenant, names, the egress proxy.

Each reader takes the text that an environment variable would hold and raises ValueError for what it does not
accept; `sources.py` turns that into a SettingsError that says what would be accepted.
"""

from __future__ import annotations

import re
from ipaddress import ip_network

from surehook.core import address, hostname
from surehook.core.errors import Problem

_TENANT = re.compile(r"[a-z0-9_-]{1,64}", re.ASCII)
_PROXY = re.compile(r"http://(?:[^:@/\s]*:[^:@/\s]*@)?([A-Za-z0-9.\-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})/?")

ByTenant = dict[str, tuple[str, ...]]


def networks(text: str) -> tuple[str, ...]:
    """CIDR blocks separated by commas."""
    return tuple(str(ip_network(part)) for part in _parts(text, ","))


def networks_by_tenant(text: str) -> ByTenant:
    """`acme=10.1.0.0/16,10.3.0.0/16;beta=10.2.0.0/16`: every tenant once, with at least one network."""
    found: ByTenant = {}
    for part in _parts(text, ";"):
        tenant, mark, blocks = part.partition("=")
        tenant = tenant.strip()
        if not mark or not _TENANT.fullmatch(tenant) or tenant in found:
            raise ValueError
        found[tenant] = networks(blocks)
        if not found[tenant]:
            raise ValueError
    return found


def nat64_prefixes(text: str) -> tuple[str, ...]:
    """IPv6 blocks of a length that RFC 6052 gives to NAT64, separated by commas."""
    for part in _parts(text, ","):
        address.nat64(part)
    return networks(text)


def host_names(text: str) -> tuple[str, ...]:
    """Host names separated by commas, in lower case. Addresses are not names: networks are for them."""
    names = []
    for part in _parts(text, ","):
        try:
            host = hostname.read(part)
        except Problem as problem:
            raise ValueError(problem.detail) from None
        if host.literal:
            raise ValueError(f"{part} is an address")
        names.append(host.text)
    return tuple(names)


def proxy(text: str) -> str:
    """`http://[user:password@]host:port`."""
    match = _PROXY.fullmatch(text)
    if match is None or not 0 < int(match[2]) < 65_536:
        raise ValueError
    return text


def shown_by_tenant(found: ByTenant) -> str:
    """The text that `networks_by_tenant` reads."""
    return ";".join(f"{tenant}={','.join(blocks)}" for tenant, blocks in found.items())


def _parts(text: str, mark: str) -> list[str]:
    return [part.strip() for part in text.split(mark) if part.strip()]
