"""The host part of a URL: an address or a name, and the names that are refused by their text.

Name rules are a convenience that gives a clear answer at registration. The guard is the rule for
addresses: a name that slips through here still has every address it resolves to judged.
"""

from __future__ import annotations

import re
import unicodedata

from msgspec import Struct

from surehook.core import address
from surehook.core.errors import Problem

NAME_CHARS_MAX = 253  # RFC 1035 section 3.1, in text form

_TEXT = re.compile(r"[A-Za-z0-9.\-]+", re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# The "ends in a number" rule of the WHATWG URL standard.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
# IDNA 2008 takes these as they are (RFC 5892 section 2.6 and appendix A), although case folding would change them:
# each is replaced by a letter that nothing changes.
_DEVIATIONS = dict.fromkeys(map(ord, "\u00df\u03c2\u200c\u200d"), "\u4e00")
_LOOPBACK = ("127.0.0.1", "::1")

# Always refused: what clouds answer credentials under.
_METADATA = frozenset({"metadata", "instance-data", "metadata.google.internal", "metadata.goog"})
_METADATA_SUFFIXES = (".metadata.google.internal", ".metadata.goog", ".ec2.internal")
# Refused unless the operator granted some private network: names that only private resolvers know.
_PRIVATE_SUFFIXES = (
    ".local", ".internal", ".home.arpa", ".localdomain", ".localdomain6", ".svc", ".onion", ".i2p", ".alt",
)  # fmt: skip
# RFC 2606 and 6761: refused outside development.
_RESERVED_SUFFIXES = (".test", ".example", ".invalid")


class UrlHost(Struct, frozen=True):
    """`text` is a lower-case name without trailing dot, or a canonical address."""

    text: str
    literal: bool


def read(text: str) -> UrlHost:
    """Read the host of a URL, brackets included. Raises Problem url_host_syntax or url_host_ambiguous."""
    if text.startswith("["):
        inside = text[1:-1]
        found = address.canonical(inside) if ":" in inside else None
        if found is None:
            raise bad_syntax("not an IPv6 address in brackets")
        return UrlHost(found, literal=True)
    if not _TEXT.fullmatch(text):
        raise bad_syntax(
            "only ASCII letters, digits, dots and hyphens; write an international name in its xn-- form"
        )
    name = text.lower()
    if (found := address.canonical(name)) is not None:
        return UrlHost(found, literal=True)
    if _NUMBER.fullmatch(name.rstrip(".").rpartition(".")[2]):
        raise Problem("url_host_ambiguous", "the host looks like a number but is no plain dotted address",
                      field="url", hint="write four decimal parts such as 192.0.2.1, or a name")  # fmt: skip
    name = name.removesuffix(".")
    if len(name) > NAME_CHARS_MAX or not all(map(_is_label, name.split("."))):
        raise bad_syntax(
            "labels are 1 to 63 letters, digits and inner hyphens, at most 253 characters in all"
        )
    return UrlHost(name, literal=False)


def is_local(name: str) -> bool:
    """True for `localhost` and everything under it (RFC 6761 section 6.3), which no resolver is asked for."""
    return name == "localhost" or name.endswith(".localhost")


def local_addresses(rules: address.AddressRules) -> tuple[str, ...]:
    """Addresses of `localhost`: the loopback addresses that the operator granted."""
    return tuple(found for found in _LOOPBACK if address.is_granted(found, rules))


def refusal(name: str, rules: address.AddressRules, own: frozenset[str], *, reserved: bool) -> str | None:
    """The reason to refuse a name by its text, or None. Grants open the names that private networks use."""
    if name in own:
        return "this is our own name: deliveries to ourselves would run in a circle"
    if name in _METADATA or name.endswith(_METADATA_SUFFIXES):
        return "this name belongs to a cloud's metadata service"
    if is_local(name):
        return None if local_addresses(rules) else "names of this machine are not called"
    if reserved and name.endswith(_RESERVED_SUFFIXES):
        return "this domain is reserved and never resolves"
    if ("." not in name or f".{name}".endswith(_PRIVATE_SUFFIXES)) and not rules.allow:
        return "this name only exists in a private network"
    return None


def bad_syntax(detail: str) -> Problem:
    return Problem("url_host_syntax", f"the host cannot be read: {detail}", field="url",
                   hint="a public host name such as hooks.example.com")  # fmt: skip


def _is_label(label: str) -> bool:
    return _LABEL.fullmatch(label) is not None and (not label.startswith("xn--") or _is_punycode(label[4:]))


def _is_punycode(encoded: str) -> bool:
    """True if an A-label is valid: RFC 3492 text, in its one spelling, of a label that needs the encoding and no mapping.

    Mappings (wide digits, capitals, loose marks) are carried out by some readers and not by others.
    """
    try:
        decoded = encoded.encode("ascii").decode("punycode")
        again = decoded.encode("punycode").decode("ascii")
    except (UnicodeError, ValueError, OverflowError):
        return False
    if again != encoded or decoded.isascii() or any("\x7f" <= char < "\xa1" for char in decoded):
        return False
    plain = decoded.translate(_DEVIATIONS)
    return (
        unicodedata.normalize("NFKC", plain.casefold()) == plain
        and not unicodedata.category(decoded[0]).startswith("M")
        and not any("\ud800" <= char <= "\udfff" for char in decoded)
    )
