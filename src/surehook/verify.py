"""Signs messages and verifies those of others: the part of surehook that needs no server and no storage.

    import surehook

    try:
        message = surehook.verify("github", body, headers, secret)      # the raw bytes, before any parsing
    except surehook.VerifyError as refusal:
        log(refusal.code)                            # for the operator
        return refusal.status, refusal.public        # for the sender: the same words for every 401
    handle(message.id, message.type, message.data)   # dedupe by the id; message.proven says what may be relied on

Several secrets may be given during a rotation, with the time each one holds (`Key`). The providers, and what each scheme
proves, are in docs/receiving.md. Public-key schemes (`v1a`, SendGrid, PayPal) need the `cryptography` package.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from types import ModuleType

from surehook.core import signature, verification
from surehook.core.meant import meant
from surehook.core.signature import SecretError
from surehook.core.sources.catalog import PROVIDERS, provider_named
from surehook.core.sources.judge import Judge
from surehook.core.sources.message import Message
from surehook.core.sources.provider import Provider
from surehook.core.verification import Headers, Key, Keys, Verified, Verifier, VerifyError

__all__ = [
    "Key",
    "Message",
    "Provider",
    "SecretError",
    "Verified",
    "Verifier",
    "VerifyError",
    "sign",
    "verify",
]


def verify(
    provider: str | Provider,
    body: bytes | str,
    headers: Headers,
    secret: Keys,
    *,
    now: float | None = None,
    tolerance_s: float | None = None,
    url: str | None = None,
    known: Mapping[str, str] | None = None,
) -> Message:
    """Verify one received request.

    provider     its name (`surehook`, `stripe`, `yousign`, …), or a `Provider` of your own
    body         what arrived, byte for byte, before any parsing; text is taken as UTF-8
    headers      a mapping, or pairs; names in any case, text or bytes
    secret       one or several, as text or `Key`; a public key where the scheme is asymmetric
    now          Unix seconds (None: this machine's clock)
    tolerance_s  how far the signed time may be from now (None: as the provider has it; 300 for Standard Webhooks)
    url          as the sender called it, where it is signed (Twilio)
    known        what the receiver knows besides (`{"webhook_id": …}` for PayPal)

    Raises VerifyError and nothing else.
    """
    found = provider_named(provider) if isinstance(provider, str) else provider
    if not isinstance(found, Provider):
        raise VerifyError(
            "bad_setup",
            f"there is no provider {provider!r:.64}",
            hint=meant(str(provider), PROVIDERS, "providers"),
        )
    if not isinstance(known, Mapping | None):
        raise VerifyError("bad_setup", "`known` is a mapping of names to texts")
    at = time.time() if now is None else now
    judge = Judge(found, secret, tolerance_s=tolerance_s, known=known)
    return judge.verify(body, headers, now=at, url=url)


def sign(
    secrets: str | Sequence[str], msg_id: str, body: bytes, *, timestamp: int | None = None
) -> dict[str, str]:
    """The three headers of a signed message, one signature per secret (`whsec_…` or `whsk_…`).

    `timestamp` is in whole Unix seconds (None: now). Raises SecretError for an unusable secret or id.
    """
    at = int(time.time()) if timestamp is None else timestamp
    if not verification.is_message_id(msg_id):
        raise SecretError("a message id is 1 to 128 letters, digits, _ and -")
    given = [secrets] if isinstance(secrets, str | None) else secrets
    if not given:
        raise SecretError("a secret is needed, and the list of them is empty")
    if not isinstance(body, bytes | bytearray | memoryview):
        raise SecretError(f"the body is bytes, as they are sent, and not a {type(body).__name__}")
    read = [signature.read_secret(text) for text in given]
    signatures = [
        (signature.sign if kind == signature.V1 else signature.sign_v1a)(material, msg_id, at, body)
        for kind, material in read
    ]
    return {
        "webhook-id": msg_id,
        "webhook-timestamp": str(at),
        "webhook-signature": b" ".join(signatures).decode("ascii"),
    }


class _Verify(ModuleType):
    """`surehook.verify` is this module and is called like its function, so that both ways of importing it work."""

    __call__ = staticmethod(verify)


sys.modules[__name__].__class__ = _Verify
