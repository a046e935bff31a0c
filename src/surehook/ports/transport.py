"""One HTTP request out, one answer back: the contract between `delivery` and `wire`.

The transport never retries, never follows a redirect that the request did not allow, and never raises:
whatever happens becomes an `Answer`. It calls `done` exactly once, never from inside `send`.

Callbacks, not awaitables, on purpose: a future and a task per delivery cost about as much as the whole
parsing of the answer, and this is the hottest seam of the product.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct

from surehook.core.model import EndpointTls

Failure = Literal[
    # before a connection: outcome `unreachable`
    "dns_nxdomain", "dns_failure", "dns_timeout", "connect_refused", "connect_timeout", "connect_unreachable",
    "connect_reset", "tls_expired", "tls_name", "tls_untrusted", "tls_protocol", "tls_client_certificate", "tls_timeout",
    "proxy_unreachable",
    # ours, not the endpoint's: outcome `unreachable`, never charged to the endpoint's breaker
    "proxy_failure", "no_resources",
    # the guard, and the operator's proxy: outcome `blocked`
    "url_forbidden", "address_forbidden", "peer_mismatch", "proxy_refused",
    # after a connection
    "timeout",  # outcome `timed_out`
    "reset", "eof",  # outcome `broken`
    "not_http", "bad_status", "bad_headers", "bad_framing", "headers_too_large", "too_many_informational",
    "switched_protocols",  # outcome `garbled`
    # redirects: outcome `redirected`
    "redirect_limit", "redirect_forbidden",
    # the caller's own doing
    "aborted",
    # no OAuth2 token for the request: made by delivery/tokens.py, never by a transport; outcome `unreachable`,
    # `token_forbidden` `blocked`
    "token_timeout", "token_unreachable", "token_refused", "token_failed", "token_redirected", "token_unusable",
    "token_forbidden",
]  # fmt: skip


class Target(Protocol):
    """A parsed URL ready to be called; made by `Transport.target` or `Transport.stored`. Cheap to keep."""

    @property
    def url(self) -> str: ...


class Request(Struct, gc=False):
    """A request to be sent. `headers` and `private` are complete lines (`name: value\\r\\n`…) without Host, Content-Length and
    Connection. `private` are the endpoint's own, perhaps credentials: they go along to its own origin alone."""

    target: Target
    headers: bytes
    body: bytes
    timeout_s: float  # the whole attempt: DNS, connect, TLS, write, headers, redirects
    connect_timeout_s: float
    private: bytes = b""
    redirects: int = 0  # how many to follow
    redirect_style: Literal["strict", "yousign"] = "strict"  # which statuses are followed (docs/policies.md)
    method: bytes = b"POST"
    # Asked in the very step that writes the first byte, of each hop (which comes after the dialling, where there is any):
    # False, and nothing is sent, or nothing more (`redirected`), failure `aborted`. Meant for the lease.
    permit: Callable[[], bool] | None = None

    def add_private(self, line: bytes) -> None:
        """Send one more line that goes to the endpoint's own origin alone."""
        self.private += line

    def shorten(self, by_s: float) -> None:
        """Leave less time for the attempt, of which some is gone."""
        self.timeout_s -= by_s


class Answer(Struct, gc=False):
    """The answer to a request. `status` None: no complete final headers were seen, and `failure` says why.

    Both are set where a redirect was not followed (`redirect_limit`, `redirect_forbidden`, and
    `address_forbidden` where it led to a refused address): the status is the redirect's. Read `failure` first.

    A failure after complete headers (a body that breaks off or is over its cap) is not a failure: the
    status decides; `truncated` is set.
    """

    status: int | None = None
    failure: Failure | None = None
    unknown: bool = False  # no answer, and at least one byte of the body was written
    headers: bytes = b""  # header lines as received, at most 4 KiB kept
    body: bytes = b""  # first bytes of the body, at most 16 KiB kept
    truncated: bool = False
    address: str | None = None
    dns_us: int | None = None
    connect_us: int | None = None
    tls_us: int | None = None
    first_byte_us: int | None = None
    total_us: int = 0
    redirected: int = 0  # hops followed


class Exchange(Protocol):
    """A request on its way."""

    def abort(self) -> None:
        """Stop; `done` is called with failure `aborted` unless it has been called already."""
        ...


class Transport(Protocol):
    def target(self, url: str, *, tenant: str, tls: EndpointTls | None = None) -> Target:
        """Parse and judge a URL as far as that needs no DNS. Raises Problem (`url_…`, `address_forbidden`), field `url`.

        tls  what this endpoint trusts and shows; not looked at here (`check_tls` did), used from the first dial on
        """
        ...

    def stored(self, url: str, *, tenant: str, tls: EndpointTls | None = None) -> Target:
        """Like `target`, for a URL accepted earlier: never raises. What the rules of today refuse is answered by
        `send` with `url_forbidden` or `address_forbidden`."""
        ...

    async def check(self, url: str, *, tenant: str) -> None:
        """Judge a URL for registration, DNS included. A name that does not resolve now passes. Raises Problem."""
        ...

    def check_tls(self, tls: EndpointTls, *, url: str, now: int) -> None:
        """Judge what an endpoint at `url` would trust and show, as of `now` (Unix milliseconds): readable, in date,
        key and certificate a pair. Raises Problem `invalid_tls` with field `tls` or one of its own (`tls.ca`, …)."""
        ...

    def send(self, request: Request, done: Callable[[Answer], None]) -> Exchange: ...

    async def close(self) -> None:
        """Abort what is under way and close every connection."""
        ...
