"""An egress proxy, where the operator set one: a CONNECT tunnel, for https and for http alike.

The target is judged before the proxy hears of it, and the proxy is told the judged address, not the name:
a second look-up behind our back could lead elsewhere. No other proxy is ever used; the environment is not asked.

Its answer to CONNECT has at most 16 KiB and comes within the attempt's time to connect. It means:

    2xx, and nothing behind the head   the tunnel is open
    5xx                                it could not connect: the endpoint's trouble, `proxy_unreachable`. Behind a proxy
                                       this is how a dead endpoint looks, so breakers and schedules have to see it
    4xx but 407                        it does not let us go there: `proxy_refused`, as a refusal by our own guard
    all else, silence included         our own trouble and never charged to an endpoint: `proxy_failure`
"""

from __future__ import annotations

import base64
import re
from urllib.parse import unquote

from msgspec import Struct

from surehook.core import address
from surehook.core.errors import SettingsError
from surehook.core.http1.answer_head import HEAD
from surehook.ports.transport import Failure

REPLY_BYTES = 16 * 1024  # of a proxy's answer to CONNECT

_SETTING = re.compile(
    r"http://(?:(?P<user>[^:@/]*):(?P<password>[^@/]*)@)?(?P<host>[A-Za-z0-9.\-]+|\[[0-9A-Fa-f:.]+\]):(?P<port>[0-9]{1,5})/?"
)


class Proxy(Struct, frozen=True):
    """The address of the proxy. `address` is None if the host is a name, which is resolved without being judged."""

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


def refusal(reply: bytes) -> Failure | None:
    """The reason why a reply with a complete head opens no tunnel, or None. Bytes behind the head would be somebody else's
    answer."""
    read = HEAD.match(reply)
    if read is None:
        return "proxy_failure"
    status = int(read[2])
    if 200 <= status < 300:
        return None if read.end() == len(reply) else "proxy_failure"
    if status >= 500:
        return "proxy_unreachable"
    return "proxy_refused" if status >= 400 and status != 407 else "proxy_failure"
