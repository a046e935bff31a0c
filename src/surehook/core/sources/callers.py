"""The address of the caller: networks that a source allows, and addresses behind trusted proxies.

`X-Forwarded-For` can be forged; each proxy appends the address that it was called from. So it is read from its end, as
long as the address that wrote an entry is a trusted proxy. The first address that is not is the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from surehook.core.sources.provider import SourceError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

HOPS = 20  # proxies between a sender and an application; more entries are an attempt to hide


def networks(given: Sequence[str], field: str) -> tuple[Network, ...]:
    """Parse CIDRs. Raises SourceError for others, and for host bits, which are mostly typing errors."""
    try:
        return tuple(ip_network(one) for one in given)
    except (ValueError, TypeError):
        raise SourceError(field, "a list of networks such as 203.0.113.0/24") from None


def caller(peer: str, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> Address | None:
    """The address of the caller, or None where it is unknown.

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
    """Parse an address. IPv4 written as IPv6 (`::ffff:…`) becomes IPv4; a port is dropped."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (getattr(address, "ipv4_mapped", None) or address) if address.version == 6 else address
