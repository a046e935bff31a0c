"""Where requests go: a judged URL (`Target`), and what all URLs of one host share (`Origin`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surehook.core.url import Manners, Url
from surehook.ports.resolver import Resolved
from surehook.ports.transport import Failure
from surehook.wire.material import Own

if TYPE_CHECKING:
    from surehook.wire.connection import Connection

# Asked for on every request: nothing is ever decompressed, so nothing should be compressed.
_ALWAYS = "accept-encoding: identity\r\n"


class Origin:
    """One scheme, host and port under one set of rules and one TLS setting, with its idle connections.

    `key` says all that; connections and TLS sessions of different keys are never exchanged.

    `addresses` are the judged addresses of `resolved`, the answer they came from; of a literal or a granted
    `localhost` they are known for good and `resolved` stays None.
    """

    __slots__ = ("__weakref__", "addresses", "idle", "is_known", "key", "manners", "own", "resolved", "url")

    def __init__(
        self, url: Url, manners: Manners, known: tuple[str, ...], own: Own | None, key: tuple[object, ...]
    ) -> None:
        self.url = url
        self.manners = manners
        self.own = own
        self.key = key
        self.is_known = bool(known)
        self.addresses = known
        self.resolved: Resolved | None = None
        self.idle: list[Connection] = []


class Target:
    """A URL ready to be called. `refusal` is set on a stored URL that the rules of today refuse."""

    __slots__ = ("_url", "line", "origin", "read", "refusal", "tenant")

    def __init__(
        self, url: str, tenant: str, read: Url | None, origin: Origin | None, refusal: Failure | None
    ) -> None:
        self._url = url
        self.tenant = tenant
        self.read = read
        self.origin = origin
        self.refusal = refusal
        # The request line after the method, and the lines that never change.
        self.line = (
            b"" if read is None else f" {read.path} HTTP/1.1\r\nhost: {read.authority}\r\n{_ALWAYS}".encode()
        )

    @property
    def url(self) -> str:
        return self._url
