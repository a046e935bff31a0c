"""One source of an inbox: a provider, the receiver's secrets, and what the receiver decides beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from surehook.core.sources import callers, greeting, proof
from surehook.core.sources.judge import Judge
from surehook.core.sources.message import Message
from surehook.core.sources.provider import Bounds, Place, Provider, Reply, SourceError
from surehook.core.verification import Headers, Keys, VerifyError

PROVABLE = frozenset({"body", "time", "id", "type"})


class Source:
    """What is judged once and used for every request. Raises SourceError for a choice that cannot be right.

    name             of this source in storage and metrics, `[a-z0-9_-]` (None: the provider's)
    secret           one or several, as for `surehook.verify`
    tolerance_s      in place of the provider's, where a time is signed
    dedupe_by        places of the event id, in place of the provider's; a time alone is refused
    known            what the receiver knows (`webhook_id` of PayPal, `verify_token` of Meta)
    networks         CIDRs the caller must be in; empty: any. Beside the signature, never in its place
    trusted_proxies  CIDRs of our own proxies, whose `X-Forwarded-For` is believed
    require          what must be proven (`body`, `time`, `id`, `type`); refused at definition where the scheme cannot
    body_bytes       the largest body, in place of the provider's
    """

    def __init__(
        self,
        provider: Provider,
        secret: Keys,
        *,
        name: str | None = None,
        tolerance_s: float | None = None,
        dedupe_by: tuple[Place, ...] | None = None,
        known: Mapping[str, str] | None = None,
        networks: Sequence[str] = (),
        trusted_proxies: Sequence[str] = (),
        require: Iterable[str] = (),
        body_bytes: int | None = None,
    ) -> None:
        self.name = provider.name if name is None else name
        if re.fullmatch(r"[a-z0-9_-]{1,64}", self.name) is None:
            raise SourceError("name", "1 to 64 of a-z, 0-9, _ and -")
        if body_bytes is not None:
            provider = structs.replace(provider, bounds=_bounds(provider.bounds, body_bytes))
        if dedupe_by is not None:
            provider = structs.replace(provider, id=dedupe_by)
        self.provider = provider
        self.known: Mapping[str, str] = known or {}
        self._networks = callers.networks(networks, "networks")
        self._proxies = callers.networks(trusted_proxies, "trusted_proxies")
        _check_required(provider, frozenset(require))
        try:
            self._judge = Judge(provider, secret, tolerance_s=tolerance_s, known=known)
        except VerifyError as error:
            field = "secret" if error.code == "bad_secret" else "tolerance_s"
            raise SourceError(field, error.detail, hint=error.hint) from None

    @property
    def body_bytes(self) -> int:
        """The largest body that is taken: stop reading beyond it."""
        return self.provider.bounds.body_bytes

    @property
    def proven(self) -> frozenset[str]:
        """What the scheme covers of every message."""
        return proof.proven(self.provider)

    def admits(self, peer: str, forwarded_for: Sequence[str] = ()) -> bool:
        """Whether the caller may send to this source at all (403 if not): its address, seen through trusted proxies."""
        if not self._networks:
            return True
        address = callers.caller(peer, forwarded_for, self._proxies)
        return address is not None and callers.contains(self._networks, address)

    def verify(self, body: bytes | str, headers: Headers, *, now: float, url: str | None = None) -> Message:
        """Believe or refuse one request. Raises VerifyError and nothing else. A message with `handshake` is no event."""
        return self._judge.verify(body, headers, now=now, url=url)

    def greet(self, *, query: Mapping[str, str], headers: Headers) -> Reply:
        """What to answer a GET. Raises VerifyError (`malformed`: this provider sends none; answer 405)."""
        return greeting.greet(self.provider, self._judge.keys, self.known, query=query, headers=headers)

    def success(self, headers: Headers) -> Reply:
        """What to answer when a verified message is safely stored, or was before."""
        return greeting.success(self.provider, self._judge.keys, headers)


def _bounds(bounds: Bounds, body_bytes: int) -> Bounds:
    if isinstance(body_bytes, bool) or not isinstance(body_bytes, int) or not 0 < body_bytes <= 2**27:
        raise SourceError("body_bytes", "1 byte to 128 MiB: a body is held in memory several times over")
    return structs.replace(bounds, body_bytes=body_bytes)


def _check_required(provider: Provider, required: frozenset[str]) -> None:
    if unknown := required - PROVABLE:
        raise SourceError("require", f"{', '.join(sorted(unknown))}: only {', '.join(sorted(PROVABLE))}")
    if missing := required - proof.proven(provider):
        raise SourceError(
            "require", f"{provider.name} does not prove {', '.join(sorted(missing))}", hint=provider.caveat
        )
