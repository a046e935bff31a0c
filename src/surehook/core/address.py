"""Judges one IP address: may a request go there whose target a customer chose?

The rule is positive for IPv6 and negative for IPv4. IPv6: only global unicast, `2000::/3`, less the
blocks below; everything else is unallocated, local or special. IPv4: everything but the blocks below.
The sources are the IANA special-purpose registries (RFC 6890 and its updates) and the addresses clouds
use inside otherwise public space. `ipaddress.is_global` is not used: its table differs between
versions of Python, and it says yes to NAT64, 6to4 and multicast addresses that lead into private networks.

IPv6 addresses that carry an IPv4 address are judged by what they carry, where the carrier is one that
honest networks use: mapped (`::ffff:0:0/96`), NAT64 (`64:ff9b::/96` and the operator's own prefixes) and
ISATAP interface ids. Carriers with no honest use left (compatible, translated, 6to4, Teredo) are refused whole.

Order of precedence: the operator's deny list, then the grants, then this table.
"""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from msgspec import Struct


class Network(Struct, frozen=True):
    """A CIDR block as numbers."""

    version: int  # 4 or 6
    base: int
    mask: int

    def holds(self, version: int, number: int) -> bool:
        return version == self.version and number & self.mask == self.base


class AddressRules(Struct, frozen=True):
    """An operator's additions to the table, for everybody or for one tenant."""

    # Grants: callable although the table refuses them.
    allow: tuple[Network, ...] = ()
    # Never callable, granted or not.
    deny: tuple[Network, ...] = ()
    # The operator's own NAT64 prefixes (RFC 6052 lengths), judged by the IPv4 address inside.
    nat64: tuple[Network, ...] = ()


class AddressVerdict(NamedTuple):
    """`address` in canonical text, mapped IPv4 unwrapped: the text to dial. `refused` is the reason, or None."""

    address: str
    refused: str | None


NAT64_BITS = (32, 40, 48, 56, 64, 96)

_QUAD = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!\Z)|\Z)){4}", re.ASCII)
_SIX = re.compile(r"[0-9A-Fa-f:.]{2,45}", re.ASCII)


def network(text: str) -> Network:
    """A block from `10.0.0.0/8`, `::1/128` or a bare address; a mapped one is the IPv4 block inside, as addresses are.

    Raises ValueError, host bits included.
    """
    block = ipaddress.ip_network(text.strip())
    if isinstance(block, ipaddress.IPv6Network) and block.prefixlen >= 96:
        version, number = _unmapped(6, int(block.network_address))
        if version == 4:
            block = ipaddress.ip_network((number, block.prefixlen - 96))
    return Network(block.version, int(block.network_address), int(block.netmask))


def nat64(text: str) -> Network:
    """An operator's NAT64 prefix. Raises ValueError unless it is IPv6 of an RFC 6052 length."""
    block = network(text)
    if block.version != 6 or block.mask.bit_count() not in NAT64_BITS:
        raise ValueError(f"{text!r} is not a NAT64 prefix: an IPv6 block of /32, /40, /48, /56, /64 or /96")
    return block


def canonical(text: str) -> str | None:
    """The one spelling of an address, mapped IPv4 unwrapped; None where the text is no plain address."""
    read = _read(text)
    return None if read is None else _write(*_unmapped(*read))


def judge(text: str, rules: AddressRules) -> AddressVerdict:
    """Judge one address as a resolver or a URL gave it. The same rules always give the same verdict."""
    read = _read(text)
    if read is None:
        return AddressVerdict(text, "not an address")
    version, number = _unmapped(*read)
    return AddressVerdict(_write(version, number), _refusal(version, number, rules))


def is_granted(text: str, rules: AddressRules) -> bool:
    """True where the operator granted this address and did not deny it."""
    read = _read(text)
    if read is None:
        return False
    version, number = _unmapped(*read)
    return _among(rules.allow, version, number) and not _among(rules.deny, version, number)


def _refusal(version: int, number: int, rules: AddressRules) -> str | None:
    if _among(rules.deny, version, number):
        return "denied by the operator"
    if _among(rules.allow, version, number):
        return None
    if version == 4:
        return _special(_REFUSED_4, 4, number)
    for prefix in rules.nat64:
        if prefix.holds(6, number):
            return _refusal(4, _embedded(number, prefix.mask.bit_count()), rules)
    if _NAT64.holds(6, number):
        return _refusal(4, number & 0xFFFFFFFF, rules)
    if not _GLOBAL_UNICAST.holds(6, number):
        return _special(_REFUSED_6_NAMES, 6, number) or "not global unicast"
    # ISATAP: interface id 0000:5efe or 0200:5efe, then the IPv4 address.
    if number >> 32 & 0xFDFFFFFF == 0x5EFE:
        carried = _refusal(4, number & 0xFFFFFFFF, rules)
        if carried is not None:
            return carried
    return _special(_REFUSED_6, 6, number)


def _embedded(number: int, bits: int) -> int:
    """The IPv4 address inside a NAT64 address (RFC 6052 section 2.2: octet 8 is skipped, always zero)."""
    if bits == 96:
        return number & 0xFFFFFFFF
    octets = number.to_bytes(16, "big")
    rest = octets[bits // 8 : 8] + octets[9:]
    return int.from_bytes(rest[:4], "big")


def _read(text: str) -> tuple[int, int] | None:
    """Version and number. Zone ids, leading zeros, short forms and surrounding space are not addresses."""
    if _QUAD.fullmatch(text):
        a, b, c, d = text.split(".")
        return 4, int(a) << 24 | int(b) << 16 | int(c) << 8 | int(d)
    if ":" not in text or not _SIX.fullmatch(text):
        return None
    try:
        return 6, int(ipaddress.IPv6Address(text))
    except ValueError:
        return None


def _unmapped(version: int, number: int) -> tuple[int, int]:
    if version == 6 and number >> 32 == 0xFFFF:
        return 4, number & 0xFFFFFFFF
    return version, number


def _write(version: int, number: int) -> str:
    return str(ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number))


def _among(blocks: tuple[Network, ...], version: int, number: int) -> bool:
    return any(block.holds(version, number) for block in blocks)


def _special(table: tuple[tuple[Network, str], ...], version: int, number: int) -> str | None:
    for block, reason in table:
        if block.holds(version, number):
            return reason
    return None


def _table(rows: str) -> tuple[tuple[Network, str], ...]:
    split = (row.split(maxsplit=1) for row in rows.strip().splitlines())
    return tuple((network(block), reason) for block, reason in split)


_GLOBAL_UNICAST = network("2000::/3")
_NAT64 = network("64:ff9b::/96")

_REFUSED_4 = _table("""
0.0.0.0/8        this network
10.0.0.0/8       private network
100.64.0.0/10    carrier-grade NAT
127.0.0.0/8      loopback
168.63.129.16/32 cloud platform
169.254.0.0/16   link-local
172.16.0.0/12    private network
192.0.0.0/24     protocol assignments
192.0.2.0/24     documentation
192.31.196.0/24  anycast infrastructure
192.52.193.0/24  anycast infrastructure
192.88.99.0/24   6to4 relay
192.168.0.0/16   private network
192.175.48.0/24  anycast infrastructure
198.18.0.0/15    benchmarking
198.51.100.0/24  documentation
203.0.113.0/24   documentation
224.0.0.0/4      multicast
240.0.0.0/4      reserved
""")

_REFUSED_6 = _table("""
2001::/23          protocol assignments
2001:db8::/32      documentation
2002::/16          6to4
2620:4f:8000::/48  anycast infrastructure
3fff::/20          documentation
""")

# Outside global unicast all is refused; these rows only give the reason a better name.
_REFUSED_6_NAMES = _table("""
::/128           unspecified
::1/128          loopback
64:ff9b:1::/48   local NAT64
100::/64         discard
fc00::/7         private network
fe80::/10        link-local
fec0::/10        site-local
ff00::/8         multicast
""")
