"""Sign and verify Standard Webhooks messages: the part of surehook that needs no server.

    from surehook.verify import VerifyError, verify

    try:
        message = verify("whsec_…", request.headers, request.body)
    except VerifyError as refusal:
        log(refusal.code)       # for the operator; the sender gets the same 401 for every code
    else:
        handle(message.id)      # dedupe by this id: a retry carries it again

Several keys may be given during a rotation, with the time each one holds (`Key`). `v1a` (Ed25519) needs the
`cryptography` package and the sender's `whpk_…` key.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from surehook.core import limits, signature, verification
from surehook.core.signature import SecretError
from surehook.core.verification import Headers, Key, Keys, Verified, Verifier, VerifyError

__all__ = ["Key", "SecretError", "Verified", "Verifier", "VerifyError", "sign", "verify"]


def verify(
    keys: Keys,
    headers: Headers,
    body: bytes | str,
    *,
    now: float | None = None,
    tolerance_s: float = limits.TOLERANCE_S,
) -> Verified:
    """Believe or refuse one received message. `body` is what arrived, byte for byte, before any parsing.

    `now` is in Unix seconds (None: this machine's clock), `tolerance_s` how far both clocks may be apart.
    Raises VerifyError and nothing else.
    """
    at = time.time() if now is None else now
    return verification.verify(keys, headers, body, now=at, tolerance_s=tolerance_s)


def sign(
    secrets: str | Sequence[str], msg_id: str, body: bytes, *, timestamp: int | None = None
) -> dict[str, str]:
    """The three headers of a signed message, one signature per secret (`whsec_…` or `whsk_…`).

    `timestamp` is in whole Unix seconds (None: now). Raises SecretError for an unusable secret or id.
    """
    at = int(time.time()) if timestamp is None else timestamp
    if not verification.is_message_id(msg_id):
        raise SecretError("a message id is 1 to 128 letters, digits, _ and -")
    read = [signature.read_secret(text) for text in ([secrets] if isinstance(secrets, str) else secrets)]
    signatures = [
        (signature.sign if kind == signature.V1 else signature.sign_v1a)(material, msg_id, at, body)
        for kind, material in read
    ]
    return {
        "webhook-id": msg_id,
        "webhook-timestamp": str(at),
        "webhook-signature": b" ".join(signatures).decode("ascii"),
    }
