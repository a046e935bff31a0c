"""Requests as providers would send them, made from their records: believed by the judge, and signed as the signers by hand sign."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from msgspec import structs

import surehook
from surehook.core.sources.catalog import PROVIDERS
from surehook.core.sources.provider import SourceError
from surehook.core.sources.writing import RequestContent, write
from surehook.inbox import sources
from surehook.inbox.testing import Sender
from surehook.inbox.testing.sending import forgeries
from tests.inbox.signers import NOW, P256, RSA, SIGNERS

NAMES = sorted(set(PROVIDERS) - {"svix"})


def secret_of(name):
    private = {"paypal": RSA, "sendgrid": P256}.get(name)
    if private is None:
        return SIGNERS[name][1]
    return private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def sender(name):
    options = SIGNERS[name][6]
    return Sender.named(name, secret=secret_of(name), url=options.get("url"), known=options.get("known"))


def believed(name, message):
    options = {"url": message.url, **SIGNERS[name][6]}
    return surehook.verify(name, message.body, message.headers, SIGNERS[name][2], now=NOW, **options)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_believed_and_says_what_was_wanted(name):
    one = sender(name)
    wanted = RequestContent(id="evt_1" if one.names_events else None, type="a.b", data={"n": 1})
    message = believed(name, one.message(wanted, at=NOW))
    (event,) = message.each()
    assert event.type == "a.b"
    if one.names_events:
        assert "evt_1" in event.id or name == "dropbox_sign"
    assert event.data["n"] in (1, "1")
    assert wanted.data == {"n": 1}


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"dropbox_sign", "insigner"}))
def test_a_given_body_is_signed_as_the_signer_by_hand_signs_it(name):
    by_hand, secret, _, body, *_ = SIGNERS[name]
    made = {key.lower(): value for key, value in by_hand(body, secret, NOW).items()}
    signed = sender(name).message(RequestContent(id="msg_1" if "webhook-id" in made else "72d3162e", type="x", body=body), at=NOW) \
        if sender(name).names_events else sender(name).message(RequestContent(id=None, body=body), at=NOW)  # fmt: skip
    written = {key.lower(): value for key, value in signed.headers.items()}
    place = getattr(PROVIDERS[name].scheme, "place", None)
    header = "webhook-signature" if place is None else place.name.lower()
    if name in ("paypal", "sendgrid", "docusign"):  # a new signature each time, or by several keys
        header = ""
    assert signed.body == body
    assert not header or written[header] in made[header] or made[header] in written[header] + ",v0=00"


@pytest.mark.parametrize("name", NAMES)
def test_the_same_event_is_signed_again_over_the_same_bytes(name):
    one = sender(name)
    first = one.message(
        RequestContent(id="evt_1" if one.names_events else None, type="a.b", data={"n": 1}), at=NOW
    )
    again = first.again(at=NOW, retry=2, replay=True)
    assert again.body == first.body
    assert again.headers["webhook-retry-count"] == "2" and again.headers["webhook-replay"] == "1"
    ids = {believed(name, message).each()[0].id for message in (first, again)}
    assert len(ids) == 1


@pytest.mark.parametrize("name", NAMES)
def test_no_forgery_is_believed(name):
    one = sender(name)
    message = one.message(
        RequestContent(id="evt_1" if one.names_events else None, type="a.b", data={"n": 1}), at=NOW
    )
    made = forgeries(message, proven=sources.proven(PROVIDERS[name]))
    assert made
    for forged in made.values():
        with pytest.raises(surehook.VerifyError):
            believed(name, forged)


def test_what_a_provider_has_no_place_for_is_refused():
    with pytest.raises(SourceError, match="no event id"):
        write(PROVIDERS["meta"], "secret", RequestContent(id="evt_1"), at=NOW)
    typeless = structs.replace(PROVIDERS["hmac"], type=())
    with pytest.raises(SourceError, match="gives none"):
        write(typeless, "secret", RequestContent(id=None, type="x"), at=NOW)
    with pytest.raises(SourceError, match="an object"):
        write(PROVIDERS["hmac"], "secret", RequestContent(id=None, data=[1]), at=NOW)
