"""/v1/receipts: a signature is the proof, and nothing else is."""

from __future__ import annotations

import json
from binascii import a2b_base64
from typing import Any

import pytest

from surehook.api.codes import CODES
from surehook.core import ids, receipt_message, signature
from surehook.core.instants import render
from surehook.core.receipt import word
from surehook.core.receipt_message import BODY_BYTES
from tests.api.house import KEY, START, House

ON_SQLITE = True


class Receiver:
    """Knows one endpoint's secret, and what it was sent."""

    def __init__(self, house: House, **fields: Any) -> None:
        self.house = house
        self.endpoint = house.endpoint(receipts={}, **fields)
        self.secret = a2b_base64(self.endpoint["secret"].removeprefix("whsec_"))

    def was_sent(self, count: int = 1) -> list[tuple[str, str]]:
        sent = []
        for _ in range(count):
            event, (delivery,) = self.house.publish(self.endpoint)
            self.house.finish(delivery, "delivered", status=200)
            sent.append((event, delivery))
        return sent

    def body(self, *sent: tuple[str, str], stage: Any = "finalized", **fields: Any) -> bytes:
        told = word(stage, START, accepted_at=START - 5, **fields)
        return receipt_message.write([receipt_message.item(*one, told) for one in sent])

    def headers(self, body: bytes, *, at: int | None = None) -> dict[str, str]:
        at = self.house.engine.clock.now() if at is None else at
        return receipt_message.headers(self.endpoint["id"], [self.secret], body, now_ms=at, random=b"c" * 10)

    def says(self, body: bytes, status: int = 200, *, key: str | None = None, **headers: str) -> Any:
        answer = self.house.call(
            "POST", "/v1/receipts", key=key, content=body, headers=self.headers(body) | headers
        )
        assert answer.status_code == status, answer.text
        return answer.json()


@pytest.fixture
def receiver(house: House) -> Receiver:
    house.tenant()
    return Receiver(house)


def shown(house: House, delivery: str) -> Any:
    return house.get(f"/v1/deliveries/{delivery}")["receipt"]


def test_a_receipt_needs_no_key_and_is_shown_on_its_delivery(house: House, receiver: Receiver) -> None:
    ((event, delivery),) = receiver.was_sent()
    assert shown(house, delivery) is None
    answer = receiver.says(receiver.body((event, delivery), stage="rejected", code="late", note="too late"))

    assert answer == {"taken": 1, "unknown": []}
    assert shown(house, delivery) == {
        "stage": "rejected", "accepted_at": render(START - 5), "processed_at": None, "rejected_at": render(START),
        "finalized_at": None, "code": "late", "note": "too late",
    }  # fmt: skip
    assert house.get("/v1/deliveries?receipt=rejected")["data"] == [house.get(f"/v1/deliveries/{delivery}")]
    assert house.get("/v1/deliveries?receipt=finalized")["data"] == []
    assert house.get(f"/v1/events/{event}/deliveries")["data"][0]["receipt"]["stage"] == "rejected"
    assert house.engine.watch.receipts == {"rejected": 1}


def test_a_replayed_message_is_answered_the_same_and_changes_nothing(
    house: House, receiver: Receiver
) -> None:
    ((event, delivery),) = receiver.was_sent()
    early, late = (receiver.body((event, delivery), stage=stage) for stage in ("processed", "finalized"))
    for body in (late, early, late, early):
        assert receiver.says(body) == {"taken": 1, "unknown": []}

    assert shown(house, delivery)["stage"] == "finalized"
    assert house.engine.watch.receipts == {"finalized": 1}


def test_unknown_deliveries_are_named_and_all_unknown_is_a_404(house: House, receiver: Receiver) -> None:
    known = receiver.was_sent()
    theirs = Receiver(house).was_sent()
    problem = receiver.says(receiver.body(*theirs), 404)
    assert (problem["code"], problem["field"]) == ("unknown_delivery", "receipts")
    assert receiver.says(receiver.body(*theirs, *known)) == {"taken": 1, "unknown": [theirs[0][1]]}

    assert shown(house, theirs[0][1]) is None and shown(house, known[0][1])["stage"] == "finalized"


def test_whoever_cannot_sign_is_refused_and_told_nothing(house: House, receiver: Receiver) -> None:
    other = Receiver(house)
    sent = receiver.was_sent()
    body = receiver.body(*sent)
    good = receiver.headers(body)
    secret = receiver.secret
    seconds = int(good["webhook-timestamp"])

    def delivery_like(message_id: str, key: bytes = secret) -> dict[str, str]:
        return {
            "webhook-id": message_id,
            "webhook-signature": signature.sign(key, message_id, seconds, body).decode(),
        }

    forged: list[dict[str, str]] = [
        {"webhook-receipts": other.endpoint["id"]},
        {"webhook-receipts": ids.text(ids.ENDPOINT, b"\1" * 16)},
        {"webhook-receipts": "ep_nothing"},
        {"webhook-receipts": ""},
        {"webhook-signature": other.headers(body)["webhook-signature"]},
        {"webhook-signature": ""},
        {"webhook-timestamp": str(seconds + 1)},
        delivery_like(sent[0][0]),  # what the sender itself signs, reflected
        delivery_like(good["webhook-id"]),
        delivery_like(sent[0][0], receipt_message.receipt_key(secret)),
        receiver.headers(body, at=START - 301_000),
        receiver.headers(body, at=START + 301_000),
    ]
    texts = set()
    for change in forged:
        answer = house.call("POST", "/v1/receipts", key=None, content=body, headers=good | change)
        assert (answer.status_code, answer.json()["code"]) == (401, "bad_signature"), change
        texts.add(answer.text)
    answer = house.call("POST", "/v1/receipts", key=KEY, content=body)
    assert (answer.status_code, answer.json()["code"]) == (401, "bad_signature"), "a key is no signature"
    assert texts == {answer.text}
    assert shown(house, sent[0][1]) is None


def test_a_changed_body_is_refused(house: House, receiver: Receiver) -> None:
    sent = receiver.was_sent()
    body = receiver.body(*sent)
    answer = house.call("POST", "/v1/receipts", key=None, content=body + b" ", headers=receiver.headers(body))
    assert answer.json()["code"] == "bad_signature"


def test_secrets_of_a_rotation_are_believed_until_they_expire(house: House, receiver: Receiver) -> None:
    (sent,) = receiver.was_sent()
    house.post(f"/v1/endpoints/{receiver.endpoint['id']}/rotate-secret", {"overlap_s": 60})
    receiver.says(receiver.body(sent, stage="processed"))
    house.engine.clock.at += 60_000
    receiver.says(receiver.body(sent), 401)

    assert shown(house, sent[1])["stage"] == "processed"


def test_an_endpoint_that_is_gone_has_no_word(house: House, receiver: Receiver) -> None:
    (sent,) = receiver.was_sent()
    house.call("DELETE", f"/v1/endpoints/{receiver.endpoint['id']}")
    receiver.says(receiver.body(sent), 401)


def test_a_large_body_is_refused_before_it_is_read(house: House) -> None:
    answer = house.call("POST", "/v1/receipts", key=None, content=b"x" * (BODY_BYTES + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (b"", "invalid_receipts", None), (b"{}", "invalid_receipts", None), (b"\xff", "invalid_receipts", None),
        (b'{"receipts":[]}', "invalid_receipts", "receipts"),
        (json.dumps({"receipts": [{"event": "x", "delivery": "y"}]}).encode(), "bad_id", "receipts.0.event"),
    ],
)  # fmt: skip
def test_what_is_signed_and_cannot_be_read_is_a_422(
    receiver: Receiver, body: bytes, code: str, field: str | None
) -> None:
    problem = receiver.says(body, 422)
    assert (problem["code"], problem["field"]) == (code, field)


def test_other_methods_are_told_the_right_one(house: House) -> None:
    answer = house.call("GET", "/v1/receipts", key=None)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert CODES["bad_signature"][0] == 401


# -- what an endpoint asks for -----------------------------------------------------------------------------


def test_receipts_are_asked_for_by_an_object_and_not_by_null(house: House) -> None:
    house.tenant()
    made = house.endpoint()
    assert made["receipts"] is None
    address = f"/v1/endpoints/{made['id']}"
    for given, kept in (
        ({}, {"finalize_within_s": None}),
        ({"finalize_within_s": 3600}, {"finalize_within_s": 3600}),
        (None, None),
    ):
        assert house.call("PATCH", address, json={"receipts": given}).json()["receipts"] == kept
        assert house.endpoint(receipts=given)["receipts"] == kept


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"url": "https://elsewhere.example"}, "receipts.url"), (True, "receipts"),
        ({"finalize_within_s": 0}, "receipts.finalize_within_s"),
        ({"finalize_within_s": 30 * 86_400 + 1}, "receipts.finalize_within_s"),
        ({"finalize_within_s": "60"}, "receipts.finalize_within_s"),
    ],
)  # fmt: skip
def test_a_wish_for_receipts_is_judged(house: House, given: Any, field: str) -> None:
    house.tenant()
    body = {"tenant": "acme", "url": "https://hooks.example.com/a", "event_types": ["*"], "receipts": given}
    assert house.post("/v1/endpoints", body, 422)["field"] == field
