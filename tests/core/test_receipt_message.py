"""Receipts on the wire: believed from whoever holds the endpoint's secret, and never mistaken for a delivery."""

from __future__ import annotations

import base64
import json

import pytest

from surehook.core import ids, receipt_message, signature
from surehook.core.errors import Problem
from surehook.core.receipt import NOTE_CHARS, Word, word
from surehook.core.receipt_message import BODY_BYTES, ITEMS, item
from surehook.core.verification import VerifyError
from surehook.core.verification import verify as believe

NOW_MS = 1_772_443_800_000
SECRET, OTHER = b"s" * 32, b"o" * 32
EVENT, DELIVERY, ENDPOINT = (ids.uuid7(NOW_MS, bytes([n]) * 10) for n in range(3))
EVT, DLV, EP = ids.text("evt", EVENT), ids.text("dlv", DELIVERY), ids.text("ep", ENDPOINT)
BODY = receipt_message.write([item(EVT, DLV, word("finalized", NOW_MS, accepted_at=NOW_MS - 5))])


def signed(body: bytes = BODY, *secrets: bytes, at: int = NOW_MS) -> dict[str, str]:
    return receipt_message.headers(EP, secrets or [SECRET], body, now_ms=at, random=b"c" * 10)


def verify(headers, body=BODY, secrets=(SECRET,), at=NOW_MS):
    return receipt_message.verify(headers, body, secrets, now=at / 1000)


def test_a_message_is_believed_and_read():
    verify(signed())
    (said,) = receipt_message.read(BODY)
    assert (said.event, said.delivery) == (EVENT, DELIVERY)
    assert said.word == Word(accepted_at=NOW_MS - 5, finalized_at=NOW_MS)


def test_any_of_the_secrets_of_a_rotation_will_do_on_either_side():
    verify(signed(BODY, OTHER, SECRET))
    verify(signed(BODY, OTHER), secrets=[SECRET, OTHER])


@pytest.mark.parametrize("at", [NOW_MS - 301_000, NOW_MS + 301_000])
def test_an_old_or_early_message_is_refused(at):
    with pytest.raises(VerifyError, match="too_"):
        verify(signed(at=at))


def test_what_was_changed_or_signed_by_another_is_refused():
    headers = signed()
    for changed in (
        {"body": BODY.replace(b"finalized", b"processed")},
        {"secrets": [OTHER]},
        {"secrets": []},
        {"headers": headers | {"webhook-timestamp": str(NOW_MS // 1000 + 1)}},
        {"headers": headers | {"webhook-id": ids.text("rcp", EVENT)}},
        {"headers": {}},
    ):
        with pytest.raises(VerifyError):
            verify(**{"headers": headers, **changed})


def test_a_receipt_sent_to_a_receiver_as_a_delivery_is_not_believed():
    secret = "whsec_" + base64.b64encode(SECRET).decode()
    with pytest.raises(VerifyError, match="bad_signature"):
        believe(secret, signed(), BODY, now=NOW_MS / 1000)


def test_a_delivery_sent_back_as_a_receipt_is_not_believed():
    """Even one whose publisher chose the bytes of a message of receipts as its body."""
    seconds = NOW_MS // 1000
    for message_id in (EVT, ids.text("rcp", EVENT), "rcp_x"):
        value = signature.sign(SECRET, message_id, seconds, BODY).decode()
        headers = signed() | {"webhook-id": message_id, "webhook-signature": value}
        with pytest.raises(VerifyError, match="bad_signature"):
            verify(headers)


def test_the_key_of_receipts_signs_nothing_but_what_is_named_as_receipts():
    key = receipt_message.receipt_key(SECRET)
    value = signature.sign(key, EVT, NOW_MS // 1000, BODY).decode()
    with pytest.raises(VerifyError, match="bad_id"):
        verify(signed() | {"webhook-id": EVT, "webhook-signature": value})


def test_no_delivery_shows_the_key_of_receipts():
    """What is signed of a delivery begins with its event's id; the label of the key begins otherwise."""
    assert not receipt_message.LABEL.startswith(b"evt_")
    assert b"." not in receipt_message.LABEL  # and it has no id before a full stop at all


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", None), (b"[]", None), (b'{"receipts":{}}', None), (b'{"receipts":[]}', "receipts"), (b"\xff", None),
        (b"[" * 100_000, None),
        (b'{"receipts":[{"event":"evt_x","delivery":"dlv_x"}]}', "receipts.0.event"),
        (b'{"receipts":[{"event":"%b","delivery":"%b"}]}' % (EVT.encode(), EVT.encode()), "receipts.0.delivery"),
        (b'{"receipts":[{"event":"%b","delivery":"%b"}]}' % (EVT.encode(), DLV.encode()), "receipts.0"),
        (b'{"receipts":[{"event":"%b","delivery":"%b","finalized_at":"then"}]}' % (EVT.encode(), DLV.encode()),
         "receipts.0.finalized_at"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_a_problem(body, field):
    with pytest.raises(Problem) as refused:
        receipt_message.read(body)
    assert refused.value.field == field


def test_a_message_is_bounded():
    one = json.loads(BODY)["receipts"][0]
    assert len(receipt_message.read(json.dumps({"receipts": [one] * ITEMS}).encode())) == ITEMS
    with pytest.raises(Problem, match="receipts"):
        receipt_message.read(json.dumps({"receipts": [one] * (ITEMS + 1)}).encode())
    longest = item(EVT, DLV, word("rejected", NOW_MS, accepted_at=1, code="\0" * 64, note="\0" * NOTE_CHARS))
    assert len(receipt_message.write([longest] * ITEMS)) < BODY_BYTES


def test_unknown_fields_are_passed_over():
    newer = json.loads(BODY)["receipts"][0] | {"mood": "good"}
    assert receipt_message.read(json.dumps({"receipts": [newer], "more": 1}).encode())
