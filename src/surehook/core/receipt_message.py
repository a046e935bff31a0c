"""Receipts on the wire: a signed message that cannot be mistaken for a delivery, nor a delivery for it.

    POST /v1/receipts                         the address is the receiver's own setting, never taken from a request
    webhook-receipts: ep_…                    whose secret to judge by; what deliveries of that endpoint carried
    webhook-id: rcp_…, webhook-timestamp, webhook-signature        Standard Webhooks, v1
    {"receipts": [{"event": "evt_…", "delivery": "dlv_…", "accepted_at": "…", "finalized_at": "…", "code": "…"}]}

**Why nothing can be reflected.** Both ends know one secret, so with it alone each side's messages could be sent back to it.
Receipts are therefore signed with another key, HMAC-SHA256(secret, LABEL). Nobody who lacks the secret can make that key,
and no delivery hands it out: what is signed of a delivery begins with its event's id, `evt_`, which LABEL does not. So a
captured receipt fails at every receiver, and a captured delivery fails here, whatever its headers and body are. The
id's prefix says the same to people and to logs.

**Why repeats are harmless.** A message that is sent again within the tolerance says again what it said; words are
joined (`receipt.py`), so nothing changes. The endpoint in the header chooses a secret and proves nothing: whoever names
another endpoint is judged by that one's secret.

Only v1 secrets (HMAC) can sign receipts: of a v1a key a receiver has but the public half.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from surehook.core import ids, instants, signature
from surehook.core.errors import Problem
from surehook.core.receipt import CODE_CHARS, NOTE_CHARS, STAGES, Word
from surehook.core.verification import Headers, Key, Verifier, VerifyError

LABEL = b"surehook receipts v1"
PREFIX = "rcp"
# Receipts in one message: one request and one transaction for what a busy receiver reports in a moment.
ITEMS = 100
BODY_BYTES = 256 * 1024  # ITEMS with notes at their longest in four-byte letters, escaped, and air


class ReceiptEntry(Struct, omit_defaults=True):
    """One receipt as JSON. Unknown fields are passed over: a newer receiver may say more."""

    event: str
    delivery: str
    accepted_at: str | None = None
    processed_at: str | None = None
    rejected_at: str | None = None
    finalized_at: str | None = None
    code: str | None = None
    note: str | None = None


class ReceiptMessage(Struct):
    receipts: list[ReceiptEntry]


class Said(Struct, frozen=True):
    """The receipt for one event that a delivery brought."""

    delivery: bytes
    event: bytes
    word: Word


_message = msgspec.json.Decoder(ReceiptMessage)


def receipt_key(material: bytes) -> bytes:
    """The key that receipts are signed with, from the bytes of an endpoint's v1 secret."""
    return hmac.digest(material, LABEL, "sha256")


def item(event: str, delivery: str, word: Word) -> ReceiptEntry:
    times = {f"{stage}_at": instants.render_optional(word.at(stage)) for stage in STAGES}
    return ReceiptEntry(event=event, delivery=delivery, **times, code=word.code, note=word.note)


def write(items: Sequence[ReceiptEntry]) -> bytes:
    """The body of a message of 1 to `ITEMS` receipts."""
    assert 0 < len(items) <= ITEMS, "a message has its bounds"
    return msgspec.json.encode(ReceiptMessage(list(items)))


def headers(
    endpoint: str, materials: Sequence[bytes], body: bytes, *, now_ms: int, random: bytes
) -> dict[str, str]:
    """Headers of a message, signed with each secret, so that a rotation loses nothing."""
    message_id = ids.text(PREFIX, ids.uuid7(now_ms, random))
    seconds = now_ms // 1000
    signed = [signature.sign(receipt_key(one), message_id, seconds, body).decode() for one in materials]
    return {
        "content-type": "application/json",
        "webhook-receipts": endpoint,
        "webhook-id": message_id,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signed),
    }


def verify(headers: Headers, body: bytes, materials: Iterable[bytes], *, now: float) -> None:
    """Check that a holder of one of these v1 secrets made this message as receipts. `now` in Unix seconds.

    Raises VerifyError.
    """
    keys = [Key(signature.write_secret(signature.V1, receipt_key(one))) for one in materials]
    verified = Verifier(keys).verify(headers, body, now=now)  # bad_secret where there is none
    if not verified.id.startswith(f"{PREFIX}_"):
        raise VerifyError("bad_id", f"a message of receipts has an id {PREFIX}_…")


def read(body: bytes) -> list[Said]:
    """The receipts of a believed message, in order. Raises Problem for the field at fault."""
    try:
        message = _message.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("invalid_receipts", f"not a message of receipts: {error}"[:200]) from None
    if not 0 < len(message.receipts) <= ITEMS:
        raise Problem("invalid_receipts", f"1 to {ITEMS} receipts", field="receipts")
    return [_said(one, f"receipts.{place}") for place, one in enumerate(message.receipts)]


def _said(one: ReceiptEntry, field: str) -> Said:
    event, delivery = ids.try_parse(ids.EVENT, one.event), ids.try_parse(ids.DELIVERY, one.delivery)
    if event is None or delivery is None:
        name = "event" if event is None else "delivery"
        raise Problem("bad_id", f"not the id of a {name}", field=f"{field}.{name}")
    times: Mapping[str, Any] = {
        f"{stage}_at": None if written is None else instants.parse(written, field=f"{field}.{stage}_at")
        for stage in STAGES
        for written in [getattr(one, f"{stage}_at")]
    }
    if not any(at is not None for at in times.values()):
        raise Problem("invalid_receipts", "it says of no stage that it was reached", field=field)
    code, note = one.code and one.code[:CODE_CHARS], one.note and one.note[:NOTE_CHARS]
    return Said(delivery, event, Word(**times, code=code, note=note))
