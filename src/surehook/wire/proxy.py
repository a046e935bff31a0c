"""An egress proxy, where the operator set one: a CONNECT tunnel, for https and for http alike.

The target is judged before the proxy hears of it, and the proxy is told the judged address, not the name:
a second look-up behind our back could lead elsewhere. What goes wrong here is our own trouble and never
charged to an endpoint. No other proxy is ever used; the environment is not asked.
"""

from __future__ import annotations

import base64
import re
from urllib.parse import unquote

from msgspec import Struct

from surehook.core import address
from surehook.core.errors import SettingsError

REPLY_BYTES = 16 * 1024  # of a proxy's answer to CONNECT

_SETTING = re.compile(
    r"http://(?:(?P<user>[^:@/]*):(?P<password>[^@/]*)@)?(?P<host>[A-Za-z0-9.\-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})/?"
)
_REPLY = re.compile(rb"HTTP/1\.[01] 2[0-9][0-9][ \r]")


class Proxy(Struct, frozen=True):
    """Where the proxy is. `address` is None where the host is a name, which is asked of the resolver, unjudged."""

    host: str
    port: int
    address: str | None
    authorization: bytes = b""

    def request(self, judged: str, port: int) -> bytes:
        """The CONNECT request for one judged address."""
        where = f"[{judged}]:{port}" if ":" in judged else f"{judged}:{port}"
        line = f"CONNECT {where} HTTP/1.1\r\nhost: {where}\r\n".encode()
        if self.authorization:
            line += b"proxy-authorization: Basic " + self.authorization + b"\r\n"
        return line + b"\r\n"


def read(setting: str) -> Proxy:
    """A proxy from `http://[user:password@]host:port`. Raises SettingsError."""
    match = _SETTING.fullmatch(setting)
    if match is None or not 0 < int(match["port"]) < 65_536:
        raise SettingsError("proxy", "not a proxy URL", hint="http://[user:password@]host:port")
    authorization = b""
    if match["user"] is not None:
        pair = f"{unquote(match['user'])}:{unquote(match['password'])}"
        authorization = base64.b64encode(pair.encode())
    host = match["host"].strip("[]").lower()
    return Proxy(host, int(match["port"]), address.canonical(host), authorization)


def accepts(reply: bytes) -> bool:
    """Whether a complete reply opens the tunnel. Bytes behind it would be somebody else's answer."""
    return _REPLY.match(reply) is not None and reply.find(b"\r\n\r\n") == len(reply) - 4
