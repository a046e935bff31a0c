"""TLS sessions for resumption, so that another connection to the same peer costs about half a handshake.

A resumed handshake shows no certificate, so nothing is verified in it: it rests on the full handshake that the
session came from. Hence the rules:

- a session is used for the origin (scheme, host, port, policy, TLS setting), tenant and judged address it was
  made for, and for no other; its name was verified for that host;
- with the very context it was made with: what is trusted cannot have changed since;
- for ten minutes after the full handshake, however often it was renewed meanwhile: then the certificate is
  looked at again;
- after any failure it is dropped, and the next handshake is a full one.

Only a connection that carried an answer gives its session: with TLS 1.3 tickets come after the handshake.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import Callable

from surehook.wire.exchange import Carrier

KEPT = 1_024  # sessions, about 4 KiB each with the peer's chain inside; the oldest goes first
VERIFIED_S = 600.0

Key = tuple[object, ...]


class SessionCache:
    """TLS sessions by key, aged on the client's boot clock."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self._kept: OrderedDict[Key, tuple[ssl.SSLSession, ssl.SSLContext, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, key: Key, context: ssl.SSLContext) -> tuple[ssl.SSLSession, float] | None:
        """A session for this key, and the time of its full handshake."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if kept[1] is not context or self._boot() - kept[2] >= VERIFIED_S:
            del self._kept[key]
            return None
        return kept[0], kept[2]

    def forget(self, key: Key) -> None:
        """Drop the session: the next handshake with this peer is a full one."""
        self._kept.pop(key, None)

    def keep(self, connection: Carrier) -> None:
        """Keep the session of a closing connection, where another can go on from it."""
        key = connection.session_key
        found = connection.transport.get_extra_info("ssl_object")
        if key is None or found is None:
            return
        session = found.session
        if session is None or not (session.has_ticket or (session.id and found.version() != "TLSv1.3")):
            return
        self._kept[key] = session, found.context, connection.verified_at
        self._kept.move_to_end(key)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
