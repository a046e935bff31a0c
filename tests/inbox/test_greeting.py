"""Handshakes and replies, and that nobody gets them for nothing."""

import json

import pytest

from surehook.inbox import sources
from tests.inbox.signers import NOW, SECRET, dropbox_sign, dropbox_sign_body, hex_of, slack, zoom

META = {"hub.mode": "subscribe", "hub.verify_token": "agreed", "hub.challenge": "1158201444"}


def meta(**changes):
    source = sources.named("meta", secret=SECRET, known={"verify_token": "agreed"})
    return source.greet(query={**META, **changes}, headers={})


def code_of(call, *given, **named):
    with pytest.raises(sources.VerifyError) as caught:
        call(*given, **named)
    return caught.value.code


def test_meta_gets_its_challenge_for_the_token_that_was_agreed():
    reply = meta()
    assert (reply.status, reply.body) == (200, b"1158201444")
    assert dict(reply.headers)["content-type"].startswith("text/plain")
    assert code_of(meta, **{"hub.verify_token": "other"}) == "bad_signature"
    assert code_of(meta, **{"hub.mode": "unsubscribe"}) == "bad_signature"
    assert code_of(meta, **{"hub.challenge": "<script>alert(1)</script>"}) == "malformed"
    assert code_of(meta, **{"hub.challenge": "x" * 257}) == "malformed"
    source = sources.named("meta", secret=SECRET)
    assert code_of(source.greet, query=META, headers={}) == "bad_setup"


def test_slack_gets_its_challenge_for_a_signature():
    source = sources.named("slack", secret=SECRET)
    body = b'{"type":"url_verification","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY"}'
    message = source.verify(body, slack(body, SECRET, NOW), now=NOW)
    assert message.handshake.body == b"3eZbrw1aBm2rZgRNFdxV2595E9CY"
    assert code_of(source.verify, body, slack(body, "other", NOW), now=NOW) == "bad_signature"
    page = b'{"type":"url_verification","challenge":"<b>"}'
    assert code_of(source.verify, page, slack(page, SECRET, NOW), now=NOW) == "malformed"


def test_zoom_gets_the_hash_of_a_plain_token_for_a_signature():
    source = sources.named("zoom", secret=[SECRET, "old"])

    def asked(token):
        return json.dumps({"event": "endpoint.url_validation", "payload": {"plainToken": token}}).encode()

    body = asked("qgg8vlvZRS6UYooatFL8Aw")
    reply = source.verify(body, zoom(body, SECRET, NOW), now=NOW).handshake
    assert json.loads(reply.body) == {
        "plainToken": "qgg8vlvZRS6UYooatFL8Aw",
        "encryptedToken": hex_of(SECRET, b"qgg8vlvZRS6UYooatFL8Aw"),
    }
    assert code_of(source.verify, body, zoom(body, "other", NOW), now=NOW) == "bad_signature"


def test_nobody_is_given_a_signature_over_a_message_of_his_choice():
    source = sources.named("zoom", secret=SECRET)
    forged = f'v0:{NOW}:{{"event":"meeting.ended"}}'
    body = json.dumps({"event": "endpoint.url_validation", "payload": {"plainToken": forged}}).encode()
    assert code_of(source.verify, body, zoom(body, SECRET, NOW), now=NOW) == "malformed"


def test_adobe_gets_its_client_id_back_at_registration_and_with_every_event():
    source = sources.named("adobe_sign", secret=["ID-1", "ID-2"])
    headers = {"x-adobesign-clientid": "ID-2"}
    assert source.greet(query={}, headers=headers).headers == (("X-AdobeSign-ClientId", "ID-2"),)
    assert ("X-AdobeSign-ClientId", "ID-2") in source.success(headers).headers
    assert code_of(source.greet, query={}, headers={"x-adobesign-clientid": "ID-3"}) == "bad_signature"
    assert code_of(source.greet, query={}, headers={}) == "bad_signature"


def test_dropbox_sign_hears_the_words_it_waits_for():
    source = sources.named("dropbox_sign", secret=SECRET)
    reply = source.success({})
    assert (reply.status, reply.body) == (200, b"Hello API Event Received")
    body = dropbox_sign_body(SECRET, NOW, type="callback_test")
    assert source.verify(body, dropbox_sign(body, SECRET, NOW), now=NOW).handshake == reply


@pytest.mark.parametrize("name", ["github", "stripe", "slack", "zoom", "hmac"])
def test_a_provider_that_sends_no_get_gets_none(name):
    source = sources.named(name, secret=SECRET)
    assert code_of(source.greet, query={}, headers={}) == "malformed"
    assert source.success({}) == sources.Reply()


@pytest.mark.parametrize("query", [None, 5, {"hub.verify_token": 5}, {"hub.verify_token": "\ud800"}])
@pytest.mark.parametrize("headers", [None, 5, [1], {"x-adobesign-clientid": None}])
def test_whatever_is_asked_only_a_verify_error_comes_out(query, headers):
    for source in (
        sources.named("meta", secret=SECRET, known={"verify_token": "agreed"}),
        sources.named("adobe_sign", secret="ID-1"),
    ):
        code_of(source.greet, query=query, headers=headers)
