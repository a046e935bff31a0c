"""Who is calling: networks that a source allows, and the address behind proxies that are named.

`X-Forwarded-For` is written by whoever sends it; each proxy adds, at its end, the address it was called from. So it is read
from its end, and only as long as the address that wrote an entry is a proxy that is trusted by name. The first address that
is none is the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from surehook.core.sources.provider import SourceError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

HOPS = 20  # proxies between a sender and an application; more entries are an attempt to be lost among


def networks(given: Sequence[str], field: str) -> tuple[Network, ...]:
    """CIDRs, read. Raises SourceError for what is none, host bits included (a typing error more often than meant)."""
    try:
        return tuple(ip_network(one) for one in given)
    except (ValueError, TypeError):
        raise SourceError(field, "a list of networks such as 203.0.113.0/24") from None


def caller(peer: str, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> Address | None:
    """The address of the caller, or None where it cannot be told.

    peer           the address of the connection
    forwarded_for  the values of all `X-Forwarded-For` headers, in the order received
    trusted        networks of our own proxies
    """
    entries = [part.strip(" \t") for value in forwarded_for for part in value.split(",")]
    if len(entries) > HOPS:
        return None
    address = _read(peer)
    while address is not None and entries and contains(trusted, address):
        address = _read(entries.pop())
    return address


def contains(networks: Sequence[Network], address: Address) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _read(text: str) -> Address | None:
    """An address; one of IPv4 written as IPv6 (`::ffff:…`) is taken for what it is. Ports are cut."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (getattr(address, "ipv4_mapped", None) or address) if address.version == 6 else address
