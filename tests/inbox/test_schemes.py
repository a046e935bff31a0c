"""Every scheme by round trip with a signer that knows nothing of the product, and what a signature does not cover."""

import hashlib
import hmac

import pytest

import surehook
from surehook.core.sources.catalog import PROVIDERS
from surehook.core.sources.proof import proven
from surehook.verify import Key
from tests.inbox.crc import collide
from tests.inbox.signers import (
    NOW,
    SECRET,
    SIGNERS,
    URL,
    WHSEC,
    base64_of,
    dropbox_sign_body,
    standard,
    stripe,
)

# What each scheme covers, written down by hand; the product computes it from the record.
PROVEN = {
    "standard": "body id time type", "surehook": "body id time type", "gitlab": "body id type",
    "stripe": "body id time type", "github": "body", "gitlab_token": "", "shopify": "body",
    "slack": "body id time type", "twilio": "id", "twilio_shared_key": "id", "paypal": "",
    "sendgrid": "body id time type", "paddle": "body id time type", "linear": "body time type",
    "yousign": "body id time type", "docusign": "body id time type", "dropbox_sign": "time type", "adobe_sign": "",
    "insigner": "body type", "meta": "body id time type", "zoom": "body id time type", "hmac": "body id type", "bearer": "",
}  # fmt: skip
FRESH = {"standard", "surehook", "gitlab", "stripe", "slack", "paddle", "linear", "zoom"}
TOKENS = {"gitlab_token", "adobe_sign", "bearer"}
PUBLIC = {"paypal", "sendgrid"}
UNREAD = {"X-Authorization-Digest", "X-Yousign-Retry", "X-Gitlab-Event"}  # sent, and no part of the scheme
FORMS = {"twilio", "twilio_shared_key"}


def told(name, *, body=None, headers=None, secret=None, now=NOW, at=NOW, **changes):
    """The message, or the code of its refusal."""
    signer, signing, key, good, _, _, options = SIGNERS[name]
    signed = signer(good, signing, at) if headers is None else headers
    try:
        return surehook.verify(
            name,
            good if body is None else body,
            signed,
            key if secret is None else secret,
            now=now,
            **{**options, **changes},
        )
    except surehook.VerifyError as refusal:
        return refusal.code


def test_every_provider_has_a_signer_of_the_tests():
    assert set(PROVIDERS) - {"svix"} == set(SIGNERS) == set(PROVEN)


@pytest.mark.parametrize("name", SIGNERS)
def test_what_is_signed_by_hand_is_believed(name):
    message = told(name)
    _, _, _, body, msg_id, type_, _ = SIGNERS[name]
    assert (message.provider, message.raw, message.type) == (name, body, type_)
    assert msg_id in (None, message.id)
    assert message.fresh == (name in FRESH)
    assert message.handshake is None


@pytest.mark.parametrize("name", SIGNERS)
def test_what_is_proven_is_what_the_scheme_covers(name):
    assert proven(PROVIDERS[name]) == set(PROVEN[name].split())


@pytest.mark.parametrize("name", SIGNERS)
def test_what_a_message_says_is_proven_is_at_most_what_the_scheme_covers(name):
    message = told(name)
    assert message.proven <= set(PROVEN[name].split()) | {"id"}


@pytest.mark.parametrize("name", sorted(set(SIGNERS) - TOKENS - FORMS - {"dropbox_sign"}))
def test_a_changed_body_is_refused(name):
    body = SIGNERS[name][3]
    headers = SIGNERS[name][0](body, SIGNERS[name][1], NOW)
    for changed in (body + b" ", b" " + body, body.replace(b"1", b"2"), body[:-1], b"\xef\xbb\xbf" + body):
        assert changed == body or told(name, body=changed, headers=headers) == "bad_signature"


@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_changed_field_of_a_form_is_refused(name):
    body = SIGNERS[name][3]
    headers = SIGNERS[name][0](body, SIGNERS[name][1], NOW)
    for changed in (body.replace(b"1", b"2"), body + b"&x=y", body.partition(b"&")[2], b"", b"x"):
        assert told(name, body=changed, headers=headers) == "bad_signature"
    assert told(name, body=body + b"\xff", headers=headers) == "malformed"


@pytest.mark.parametrize("name", sorted(set(SIGNERS) - PUBLIC))
def test_another_secret_is_refused(name):
    other = WHSEC.replace("c3N", "c3M") if SIGNERS[name][1] == WHSEC else "not " + SECRET
    assert told(name, secret=other) == "bad_signature"


@pytest.mark.parametrize("name", sorted(set(SIGNERS) - PUBLIC))
def test_one_of_several_secrets_is_enough_and_its_span_is_kept(name):
    right = SIGNERS[name][2]
    other = WHSEC.replace("c3N", "c3M") if right == WHSEC else "not " + SECRET
    assert told(name, secret=[Key(other, "new"), Key(right, "old", not_after=NOW + 1)]).key_id == "old"
    assert told(name, secret=[other, Key(right, not_after=NOW)]) == "key_not_valid"
    assert told(name, secret=[other, Key(right, not_before=NOW + 1)]) == "key_not_valid"


@pytest.mark.parametrize("name", sorted(set(SIGNERS) - {"dropbox_sign"}))
def test_every_header_that_is_needed_is_missed_and_may_stand_once(name):
    signer, signing, _, body, _, _, _ = SIGNERS[name]
    headers = signer(body, signing, NOW)
    for missing in headers:
        rest = {key: value for key, value in headers.items() if key != missing}
        got = told(name, headers=rest)
        lone = missing == "X-DocuSign-Signature-2"  # then only the signature of another key is left
        assert not isinstance(got, str) or got in ("missing_header", "malformed", lone and "bad_signature"), (
            missing
        )
        twice = told(name, headers=[*headers.items(), (missing.upper(), headers[missing])])
        assert twice == "duplicate_header" or missing in UNREAD, missing
    assert told(name, headers={}) == "missing_header"
    assert not isinstance(
        told(name, headers={key.upper().encode(): value.encode() for key, value in headers.items()}), str
    )


@pytest.mark.parametrize("name", sorted(FRESH))
def test_both_edges_of_the_tolerance_are_inside(name):
    tolerance = int(PROVIDERS[name].tolerance_s)
    assert not isinstance(told(name, now=NOW + tolerance), str)
    assert not isinstance(told(name, now=NOW - tolerance), str)
    assert told(name, now=NOW + tolerance + 1) == "too_old"
    assert told(name, now=NOW - tolerance - 1) == "too_new"
    assert told(name, now=NOW + 6, tolerance_s=5) == "too_old"


@pytest.mark.parametrize(
    "name", ["github", "shopify", "insigner", "yousign", "docusign", "adobe_sign", "hmac"]
)
def test_a_tolerance_is_not_promised_where_no_time_is_signed(name):
    assert told(name, tolerance_s=60) == "bad_setup"


def test_a_tolerance_may_be_asked_for_where_a_time_is_signed_but_not_checked():
    assert told("sendgrid", tolerance_s=60).fresh
    assert told("sendgrid", tolerance_s=60, now=NOW + 61) == "too_old"
    assert told("paypal", tolerance_s=60, now=NOW + 61) == "too_old"


def test_a_batch_is_as_many_messages_as_events():
    signer = SIGNERS["sendgrid"][0]
    body = b'[{"sg_event_id":"e1","event":"open"},{"sg_event_id":"e2","event":"click"}]'
    message = told("sendgrid", body=body, headers=signer(body, "", NOW))
    assert [(one.id, one.type, one.data["event"]) for one in message.each()] == [
        ("e1", "open", "open"),
        ("e2", "click", "click"),
    ]
    for bad in (b"[]", b"{}", b"[1]", b'[{"event":"open"}]'):
        assert told("sendgrid", body=bad, headers=signer(bad, "", NOW)) == "malformed"


# -- what is not covered --------------------------------------------------------------------------------------


def test_a_paypal_body_with_the_same_checksum_passes_and_is_said_not_to_be_proven():
    """Four bytes behind any text give it any CRC-32: here as text in a field that nobody reads."""
    body = SIGNERS["paypal"][3]
    forged = collide(b'{"id":"WH-2","event_type":"A.B","resource":{"n":1000000},"x":"', b'"}', body)
    message = told("paypal", body=forged, headers=SIGNERS["paypal"][0](body, "", NOW))
    assert message.id == "WH-2"
    assert message.proven == frozenset()
    assert message.must_refetch


def test_a_dropbox_callback_with_another_document_passes_and_is_said_not_to_be_proven():
    message = told("dropbox_sign", body=dropbox_sign_body(SECRET, NOW, request="sr_of_the_attacker"))
    assert message.proven == {"time", "type"}
    assert message.must_refetch


def test_an_old_copy_of_an_unsigned_time_passes_and_is_said_not_to_be_proven():
    headers = SIGNERS["insigner"][0](SIGNERS["insigner"][3], SECRET, NOW)
    message = told(
        "insigner", headers={**headers, "X-InSigner-Timestamp": "1800000000", "X-InSigner-Delivery-Id": "new"}
    )
    assert (message.id, message.proven) == ("new", {"body", "type"})


def test_fields_of_a_form_may_be_cut_anew_and_are_said_not_to_be_proven():
    body = SIGNERS["twilio"][3]
    headers = SIGNERS["twilio"][0](body, SECRET, NOW)
    recut = told("twilio", body=b"Body=&MessageStatussen=t&To=%2B1", headers=headers)
    assert "body" not in recut.proven
    assert recut.id == told("twilio").id


def test_the_twilio_url_must_be_the_one_that_was_called():
    assert told("twilio", url="https://example.com/other") == "bad_signature"
    assert told("twilio", url=None) == "bad_setup"
    assert told("twilio", url="https://example.com:8443/hooks/twilio?tenant=acme").type == "sent"


def test_a_json_body_of_twilio_must_have_the_hash_that_is_signed_in_the_url():
    body = b'{"a":1}'
    url = URL + "&bodySHA256=" + hashlib.sha256(body).hexdigest()
    headers = {"X-Twilio-Signature": base64_of(SECRET, url.encode(), hashlib.sha1)}
    message = told("twilio", body=body, headers=headers, url=url)
    assert (message.data, message.proven) == ({"a": 1}, {"body", "id"})
    assert told("twilio", body=b'{"a":2}', headers=headers, url=url) == "bad_signature"


def test_a_field_that_is_repeated_with_its_value_is_signed_once():
    headers = {"X-Twilio-Signature": base64_of(SECRET, f"{URL}A1A2B".encode(), hashlib.sha1)}
    assert not isinstance(told("twilio", body=b"A=2&A=1&B=&A=1", headers=headers), str)


def test_a_multipart_body_has_one_part_of_the_name():
    good = SIGNERS["dropbox_sign"][3]
    part = good[: good.index(b"--xXx--")]
    headers = {"Content-Type": 'multipart/form-data; charset=utf-8; boundary="xXx"'}
    file = b'--xXx\r\nContent-Disposition: form-data; name="file"; filename="json"\r\n\r\n%PDF\r\n'
    assert told("dropbox_sign", body=file + part + file + b"--xXx--\r\n", headers=headers).type
    for bad in (part + good, part, file + b"--xXx--", b"", good.replace(b'"json"', b'"jsn"')):
        assert told("dropbox_sign", body=bad, headers=headers) == "malformed"
    for kind in (
        "application/json",
        "multipart/form-data",
        "multipart/form-data; boundary=",
        "multipart/mixed; boundary=xXx",
    ):
        assert told("dropbox_sign", headers={"Content-Type": kind}) == "malformed"


def test_the_svix_names_are_the_same_scheme():
    body = SIGNERS["standard"][3]
    message = surehook.verify("svix", body, standard(body, WHSEC, NOW, "svix"), WHSEC, now=NOW)
    assert (message.id, message.data) == ("msg_1", {"n": 1})


# -- how it is compared ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "header"), [("stripe", "Stripe-Signature"), ("paddle", "Paddle-Signature")])
def test_every_signature_is_compared_with_every_secret(name, header, monkeypatch):
    """No early exit: how long a refusal takes says nothing about how near it was."""
    compared = []
    genuine = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append(1) or genuine(one, other))
    signer, _, _, body, _, _, _ = SIGNERS[name]
    value = signer(body, SECRET, NOW)[header]
    mark, part = {"stripe": (",", "v1=" + "00" * 32), "paddle": (";", "h1=" + "00" * 32)}[name]
    for listed in ([value, part, part], [part, value, part], [part, part, value]):
        for secrets in ([SECRET, "b", "c"], ["b", "c", SECRET]):
            compared.clear()
            assert told(name, headers={header: mark.join(listed)}, secret=secrets).id
            assert len(compared) == 9


def test_a_header_with_more_than_32_signatures_is_refused():
    body = SIGNERS["stripe"][3]
    value = stripe(body, SECRET, NOW)["Stripe-Signature"]
    assert told("stripe", headers={"Stripe-Signature": value + ",v1=00" * 29}).id == "evt_1"
    assert told("stripe", headers={"Stripe-Signature": value + ",v1=00" * 31}) == "too_many_signatures"
    assert told("stripe", headers={"Stripe-Signature": value + " " * 9000 + "x"}) == "bad_signature"


@pytest.mark.parametrize(
    "options",
    [
        {"url": 5},
        {"now": "today"},
        {"now": float("nan")},
        {"known": 5},
        {"tolerance_s": -1},
        {"tolerance_s": "5"},
        {"headers": 5},
    ],
)
def test_a_mistake_of_the_receiver_is_no_fault_of_the_sender(options):
    """500 makes the sender try again later, 401 would make it blame the key."""
    assert told("stripe", **options) == "bad_setup"


@pytest.mark.parametrize("bound", ["soon", float("nan"), [], b"1"])
def test_a_span_of_a_key_that_is_no_time_is_refused(bound):
    for key in (Key(SECRET, not_before=bound), Key(SECRET, not_after=bound)):
        assert told("stripe", secret=key) == "bad_secret"
