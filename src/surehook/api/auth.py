"""Authentication of callers: `Authorization: Bearer KEY`, compared by digest.

Keys are random and long, so a plain SHA-256 is enough, and looking a digest up in a set tells nothing about how
much of a key was right. A key in the query string is refused even where it is right: it has been written to
every log on its way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from urllib.parse import unquote_to_bytes

from starlette.types import ASGIApp, Receive, Scope, Send

from surehook.api.problems import refuse
from surehook.core.errors import LedgerError, Problem
from surehook.delivery.shared import Shared
from surehook.ports.registry import Registry

OF_SETTINGS = "api_key of the settings"
KEY_BYTES = 1_024  # longer ones are nobody's
KEY_PARAMETERS = frozenset(
    {"key", "api_key", "apikey", "api-key", "token", "access_token", "authorization", "bearer"}
)


class KeyRing:
    """The digests of all valid keys: those of the settings and those of the ledger."""

    def __init__(self, registry: Registry, *, own: Iterable[str] = ()) -> None:
        self._registry = registry
        self._own = {digest(key.encode()): OF_SETTINGS for key in own}
        self._digests: Mapping[bytes, str] = self._own  # with the name of each
        self._version = -1
        # Read the keys of the ledger if its version has changed.
        self.load = Shared(self._load)

    def admits(self, authorization: bytes | None) -> bool:
        """True if this value of `Authorization` carries a key known in memory. Never waits: for the hot path."""
        key = bearer(authorization)
        return key is not None and digest(key) in self._digests

    async def check(self, authorization: bytes | None) -> bool:
        """Like `admits`, but reads the ledger again before it refuses a key, since the key may be new."""
        key = bearer(authorization)
        if key is None:
            return False
        found = digest(key)
        if found not in self._digests:
            await self.load()
        return found in self._digests

    def name(self, authorization: bytes | None) -> str | None:
        """The name of the key that this value carries; None if it carries none."""
        key = bearer(authorization)
        return None if key is None else self._digests.get(digest(key))

    def is_key(self, text: bytes) -> bool:
        return digest(text) in self._digests

    async def _load(self) -> None:
        version = await self._registry.version()
        if version != self._version:
            rows = await self._registry.keys()
            self._digests = {row.digest: row.name for row in rows} | self._own
            self._version = version


def digest(key: bytes) -> bytes:
    """The form in which a key is stored."""
    return hashlib.sha256(key).digest()


def bearer(authorization: bytes | None) -> bytes | None:
    """The key in a value of `Authorization`; None if it is of another scheme."""
    if authorization is None or len(authorization) > KEY_BYTES:
        return None
    scheme, _, key = authorization.partition(b" ")
    return (key.strip() or None) if scheme.lower() == b"bearer" else None


def authorization_of(scope: Scope) -> bytes | None:
    """The only `Authorization` header of a request; None if there is none, or more than one."""
    values = [value for name, value in scope["headers"] if name == b"authorization"]
    return values[0] if len(values) == 1 else None


def has_key_in_query(query: bytes, keys: KeyRing) -> bool:
    """True if the query has a parameter named like a key, or a key under any name."""
    for part in query.split(b"&") if query else ():
        name, _, value = part.partition(b"=")
        if unquote_to_bytes(name).decode("utf-8", "replace").lower() in KEY_PARAMETERS:
            return True
        if value and keys.is_key(unquote_to_bytes(value)):
            return True
    return False


def unauthorized(detail: str = "the request has no valid API key") -> Problem:
    return Problem("unauthorized", detail, hint="Authorization: Bearer KEY", status=401)


def key_in_query(scope: Scope, keys: KeyRing) -> Problem | None:
    """The refusal of a request whose query string has a key, which is taken out of the scope: access logs are
    written from it."""
    if not has_key_in_query(scope.get("query_string", b""), keys):
        return None
    scope["query_string"] = b"hidden"
    return unauthorized(
        "a key in the query string is not accepted, and should be replaced: it may be in logs"
    )


class KeyGuard:
    """ASGI: lets a request pass that carries a key, or asks for something open.

    Everything under `/v1` needs a key, and so do the paths of `needs_key`; the paths of `signed` judge a signature
    themselves. Unknown paths pass, and are refused by the router.
    """

    def __init__(
        self, app: ASGIApp, *, keys: KeyRing, needs_key: frozenset[str], signed: frozenset[str]
    ) -> None:
        self._app = app
        self._keys = keys
        self._needs_key = needs_key
        self._signed = signed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        problem = await self._judge(scope)
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await refuse(problem)(scope, receive, send)

    async def _judge(self, scope: Scope) -> Exception | None:
        problem = key_in_query(scope, self._keys)
        if problem is not None:
            return problem
        path = scope["path"]
        if not (path == "/v1" or path.startswith("/v1/") or path in self._needs_key):
            return None
        if path in self._signed:
            return None
        try:
            admitted = await self._keys.check(authorization_of(scope))
        except LedgerError as error:
            return error
        if admitted:
            return None
        given = sum(name == b"authorization" for name, _ in scope["headers"])
        return (
            unauthorized("the request has more than one Authorization header")
            if given > 1
            else unauthorized()
        )
