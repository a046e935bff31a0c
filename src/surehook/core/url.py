"""A webhook URL, read once and strictly.

Half of all request forgery comes from two parsers that read one text differently. So a URL is read
only here, nothing is repaired, everything that two parsers could read differently is refused with a code, and
the request is built from the result. Pure: host names are judged by their text, addresses by `address.py`.

The order of refusals is the order of reading: characters, scheme, authority, user info, fragment, host,
port, name rules, address, and last whether plain http is allowed.
"""

from __future__ import annotations

import re

from msgspec import Struct

from surehook.core import address, hostname
from surehook.core.errors import Problem
from surehook.core.ports_table import is_open_port

CHARS_MAX = 2_048  # what every server and proxy in wide use still accepts
DEFAULT_PORTS = {"http": 80, "https": 443}

_NEVER = re.compile(r"[\x00-\x20\x7f\\]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*):", re.ASCII)
_AFTER_HOST = re.compile(r"[A-Za-z0-9\-._~:/?@!$&'()*+,;=%\[\]]*", re.ASCII)  # RFC 3986, and brackets
_PORT = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
_UNBRACKETED_SIX = re.compile(r"[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*", re.ASCII)


class NetworkPolicy(Struct, frozen=True):
    """An operator's rules for URLs, beside those for addresses."""

    rules: address.AddressRules = address.AddressRules()
    allow_http: bool = False  # plain http, and the reserved test domains
    allow_ports: frozenset[int] = frozenset()  # open although the port table closes them
    own_hosts: frozenset[str] = frozenset()  # our own names: a delivery to ourselves is a loop


class Url(Struct, frozen=True):
    """A URL that was read and judged by its text.

    scheme   `http` or `https`
    host     lower-case name without trailing dot, or the canonical address without brackets
    port     always a number
    path     request target as written, `/` where empty, query included
    literal  `host` is an address
    """

    text: str
    scheme: str
    host: str
    port: int
    path: str
    literal: bool

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


def parse(text: str, policy: NetworkPolicy) -> Url:
    """Read and judge a URL without DNS.

    Raises Problem with field `url` and one of the codes url_too_long, url_syntax, url_scheme, url_userinfo,
    url_fragment, url_host_syntax, url_host_ambiguous, url_host_name, url_port, address_forbidden, https_required.
    """
    scheme, authority, tail = _split(text)
    if "@" in authority:
        raise refuse("url_userinfo", "a URL with user name or password is not taken",
                     "give them as the endpoint's authentication, of type basic, which is never shown")  # fmt: skip
    if "#" in tail:
        raise refuse("url_fragment", "a URL with a fragment is not taken", "leave out the part after #")
    if not _AFTER_HOST.fullmatch(tail):
        raise refuse("url_syntax", "path or query has a character that must be percent-encoded",
                     "only ASCII letters, digits and -._~:/?@!$&'()*+,;=%[]")  # fmt: skip
    host_text, port_text = _split_host(authority)
    host = hostname.read(host_text)
    port = _port(port_text, scheme)
    granted = host.literal and address.is_granted(host.text, policy.rules)
    if not host.literal:
        refusal = hostname.refusal(host.text, policy.rules, policy.own_hosts, reserved=not policy.allow_http)
        if refusal is not None:
            raise refuse("url_host_name", refusal, "use a public host name with at least two labels")
        granted = hostname.is_local(host.text)
    elif (reason := address.judge(host.text, policy.rules).refused) is not None:
        raise forbidden_address(reason)
    if not is_open_port(port, granted=granted) and port not in policy.allow_ports:
        raise refuse("url_port", f"port {port} is not open to webhooks",
                     "443, 80 or a port from 1024 on that no well-known other service uses")  # fmt: skip
    if scheme == "http" and not policy.allow_http:
        raise refuse(
            "https_required", "plain http is not allowed here", "use an https URL, or set SUREHOOK_ALLOW_HTTP"
        )
    path = tail if tail.startswith("/") else "/" + tail
    return Url(text, scheme, host.text, port, path, host.literal)


def refuse(code: str, detail: str, hint: str) -> Problem:
    return Problem(code, detail, field="url", hint=hint)


def forbidden_address(reason: str | None = None) -> Problem:
    """Refusal without the reason: addresses of names are not revealed, so that nobody can map a network with us."""
    detail = "the URL leads to an address that may not be called" + (f": {reason}" if reason else "")
    hint = (
        "use a publicly reachable host, or ask the operator for a grant: the server's setting allow_networks"
    )
    return refuse("address_forbidden", detail, f"{hint}; for trying on one machine, `surehook serve --dev`")


def _split(text: str) -> tuple[str, str, str]:
    """Scheme, authority, and the rest from the first `/`, `?` or `#` on."""
    if len(text) > CHARS_MAX:
        raise refuse("url_too_long", f"longer than {CHARS_MAX} characters", "shorten path and query")
    if _NEVER.search(text):
        raise refuse(
            "url_syntax", "spaces, control characters and backslashes are not taken", "percent-encode them"
        )
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    if scheme not in DEFAULT_PORTS or match is None:
        raise refuse("url_scheme", "not an http or https URL", "such as https://hooks.example.com/in")
    rest = text[match.end() :]
    at = min((i for i in map(rest[2:].find, "/?#") if i >= 0), default=len(rest) - 2)
    if not rest.startswith("//") or at <= 0:
        raise refuse("url_syntax", "no host after the scheme", "such as https://hooks.example.com/in")
    return scheme, rest[2 : 2 + at], rest[2 + at :]


def _split_host(authority: str) -> tuple[str, str | None]:
    if authority.startswith("["):
        host, bracket, after = authority.partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise hostname.bad_syntax("brackets do not match")
        return host + "]", after[1:] if after else None
    if _UNBRACKETED_SIX.fullmatch(authority) or "]" in authority:
        raise hostname.bad_syntax("an IPv6 address stands in brackets")
    host, colon, port = authority.partition(":")
    if not host:
        raise refuse("url_syntax", "no host after the scheme", "such as https://hooks.example.com/in")
    return host, port if colon else None


def _port(text: str | None, scheme: str) -> int:
    if text is None:
        return DEFAULT_PORTS[scheme]
    if not _PORT.fullmatch(text) or int(text) > 65_535:
        raise refuse("url_port", "not a port", "a number from 1 to 65535 without sign or leading zeros")
    return int(text)
