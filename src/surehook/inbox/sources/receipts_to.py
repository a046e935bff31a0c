"""The destination of receipts for a source's events: the receiver's own setting, which no request can change."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from surehook.core import signature
from surehook.core.signature import SecretError
from surehook.core.sources.provider import SourceError, Standard
from surehook.core.verification import Key

TIMEOUT_S = 10.0  # of one request; what it tells is small and can wait


class ReceiptsTo:
    """Tell the sender of a source what became of its events, where it asks for that. Raises SourceError.

    url        of the sender's `POST /v1/receipts`, http:// or https://
    secret     to sign with, one or several `whsec_…`; None: those of the source
    timeout_s  of one request
    """

    def __init__(
        self, url: str, secret: str | Sequence[str] | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> None:
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme in ("http", "https") and parts.hostname and parts.path.strip("/")
            _ = parts.port  # raises for one that is none
        except (ValueError, AttributeError):  # the latter: it is no text
            is_usable = False
        if not is_usable or not url.isascii() or not url.isprintable() or parts.query or parts.fragment:
            raise SourceError(
                "receipts.url",
                "not an http:// or https:// address with a path and no query",
                hint="…/v1/receipts",
            )
        if not 0 < timeout_s <= 60:
            raise SourceError("receipts.timeout_s", "more than 0 and at most 60 seconds")
        self.url = url
        self.timeout_s = timeout_s
        self._given = None if secret is None else [secret] if isinstance(secret, str) else list(secret)

    def __repr__(self) -> str:
        return f"ReceiptsTo({self.url!r})"

    def materials(self, scheme: object, keys: Sequence[Key]) -> tuple[bytes, ...]:
        """The secrets to sign with, for a source of this scheme with these keys. Raises SourceError."""
        if not isinstance(scheme, Standard):
            raise SourceError("receipts", "only senders of Standard Webhooks take receipts")
        texts = self._given if self._given is not None else [key.secret for key in keys]
        found = []
        for text in texts:
            if self._given is None and text.startswith(signature.PREFIX_PUBLIC):
                continue
            try:
                kind, material = signature.read_secret(text)
            except SecretError as error:
                raise SourceError("receipts.secret", error.detail, hint=error.hint) from None
            if kind != signature.V1:
                raise SourceError("receipts.secret", "receipts are signed with a whsec_… secret")
            found.append(material)
        if not found:
            raise SourceError(
                "receipts.secret",
                "a public key cannot sign receipts",
                hint="ReceiptsTo(url, secret='whsec_…')",
            )
        return tuple(found)
