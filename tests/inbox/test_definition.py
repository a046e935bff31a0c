"""What is refused when a provider or a source is defined."""

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from surehook.core.sources.catalog import PROVIDERS, hmac_provider
from surehook.inbox import sources
from surehook.inbox.sources import (
    BODY,
    Clock,
    Digest,
    Element,
    Field,
    First,
    Header,
    Known,
    Provider,
    Signed,
    Source,
    SourceError,
    Whole,
)  # fmt: skip
from tests.inbox.signers import ED, NOW, P256, RSA, SECRET, SIGNERS, WHSEC, der, hex_of, pem, standard

P384 = ec.generate_private_key(ec.SECP384R1())
SHORT = rsa.generate_private_key(65537, 1024)


def provider(**changes):
    given = {"name": "mine", "scheme": Signed(Header("X-Sig"), (BODY,)), "id": (Field("event_id"),)}
    return Provider(**{**given, **changes})


def field_of(error):
    return error.value.field


@pytest.mark.parametrize(
    "places",
    [
        (Field("created_at"),), (Field("timestamp"),), (Field("event.event_time"),), (Header("X-Request-Timestamp"),),
        (Field("generatedDateTime"),), (Field("eventDate"),), (Field("type"), Field("event_ts")), (Field("date"),),
        (First((Field("created"), Field("updated"))),), (Field("when"),), (Field("type"),), (),
        (Field("event_id", optional=True),),
    ],
)  # fmt: skip
def test_an_id_that_two_events_may_share_is_refused(places):
    with pytest.raises(SourceError) as caught:
        provider(id=places, type=(Field("type"),), occurred_at=Clock(Field("when")))
    assert field_of(caught) == "id"
    with pytest.raises(SourceError):
        Source(provider(type=(Field("type"),), occurred_at=Clock(Field("when"))), SECRET, dedupe_by=places)


@pytest.mark.parametrize(
    "places",
    [
        (Field("event_id"),), (Field("document_id"), Field("created_at")), (Digest("body"),), (Field("state"),),
        (Header("X-Delivery"), Field("type")), (First((Field("id"), Header("X-Id"))),), (Field("format"),),
    ],
)  # fmt: skip
def test_an_id_with_something_besides_the_time_is_taken(places):
    assert provider(id=places, type=(Field("type"),)).id == places


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": "Mine"}, "name"),
        ({"name": ""}, "name"),
        ({"tolerance_s": 300}, "tolerance_s"),
        ({"tolerance_s": 0, "sent_at": Clock(Header("X-T"))}, "tolerance_s"),
        ({"body": "multipart"}, "part"),
        ({"part": "json"}, "part"),
        ({"scheme": Signed(Header("X-Sig"), ())}, "scheme.content"),
        ({"scheme": Signed(Header("X-Sig"), ("constant", Known("webhook_id")))}, "scheme.content"),
        ({"scheme": Signed(Header("X-Sig"), (Element("t"), BODY))}, "scheme.content"),
        (
            {"scheme": Signed(Header("X-Sig"), (BODY,), elements=(",", "v1"), numbered=True)},
            "scheme.elements",
        ),
    ],
)
def test_a_contradiction_is_refused(changes, field):
    with pytest.raises(SourceError) as caught:
        provider(**changes)
    assert field_of(caught) == field


@pytest.mark.parametrize(
    ("choices", "field"),
    [
        ({"name": "a b"}, "name"), ({"secret": ""}, "secret"), ({"secret": []}, "secret"), ({"secret": " x"}, "secret"),
        ({"secret": "x\n"}, "secret"), ({"secret": pem(RSA)}, "secret"), ({"secret": "whpk_x"}, "secret"),
        ({"networks": ["203.0.113.1/24"]}, "networks"), ({"networks": ["x"]}, "networks"),
        ({"trusted_proxies": ["x"]}, "trusted_proxies"), ({"require": ["time"]}, "require"),
        ({"require": ["everything"]}, "require"), ({"require": "body"}, "require"), ({"ignore": "document.*"}, "ignore"),
        ({"schema_version": Field("v"), "schema_versions": "v1"}, "schema_versions"), ({"body_bytes": 0}, "body_bytes"), ({"tolerance_s": 60}, "tolerance_s"),
    ],
)  # fmt: skip
def test_a_choice_that_cannot_be_right_is_refused(choices, field):
    with pytest.raises(SourceError) as caught:
        Source(provider(), **{"secret": SECRET, **choices})
    assert field_of(caught) == field


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ("ecdsa-p256-sha256", pem(RSA)), ("ecdsa-p256-sha256", pem(P384)), ("rsa-sha256", pem(SHORT)), ("rsa-sha256", pem(P256)), ("rsa-sha256", SECRET), ("ecdsa-p256-sha256", "AAAA"),
        ("ed25519", "00" * 32), ("ed25519", "01" + "00" * 31), ("ed25519", "zz" * 32), ("ed25519", SECRET),
        ("rsa-sha256", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"), ("rsa-sha256", "ä" * 10),
    ],
)  # fmt: skip
def test_a_public_key_that_must_not_be_trusted_is_refused(algorithm, key):
    with pytest.raises(SourceError):
        Source(provider(scheme=Signed(Header("X-Sig"), (BODY,), algorithm)), key)


def test_a_source_of_ones_own_is_verified_and_says_what_it_proves():
    acme = Provider(
        name="acme",
        scheme=Signed(Header("Acme-Signature"), (Element("t"), ".", BODY), elements=(",", "v1")),
        id=(Field("event_id"),),
        type=(Field("event"),),
        sent_at=Clock(Element("t")),
        tolerance_s=300,
    )
    source = sources.of(acme, secret=SECRET, name="acme-eu", require={"body", "id"})
    body = b'{"event_id":"e:1","event":"a.b"}'
    headers = {"acme-signature": f"t={NOW},v1=00,v1={hex_of(SECRET, b'%d.' % NOW + body)}"}
    message = source.verify(body, headers, now=NOW)
    assert (source.name, message.id, message.type, message.fresh) == ("acme-eu", "e:1", "a.b", True)
    assert source.proven == message.proven == {"body", "id", "type"}


def test_an_ed25519_scheme_of_ones_own_takes_a_public_key_in_hex():
    scheme = Signed(Header("X-Sig"), (Header("X-Time"), BODY), "ed25519")
    source = Source(provider(scheme=scheme), ED.public_key().public_bytes_raw().hex())
    body = b'{"event_id":"e1"}'
    headers = {"x-sig": ED.sign(b"1700" + body).hex(), "x-time": "1700"}
    assert source.verify(body, headers, now=NOW).id == "e1"


def test_several_places_make_an_id_that_no_other_values_make():
    source = Source(provider(id=(Field("a"), Field("b"))), SECRET)

    def id_of(body):
        return source.verify(body, {"x-sig": hex_of(SECRET, body)}, now=NOW).id

    assert id_of(b'{"a":"1:2","b":"3"}') != id_of(b'{"a":"1","b":"2:3"}')
    assert id_of(b'{"a":"1%3A2","b":"3"}') != id_of(b'{"a":"1:2","b":"3"}')


def test_the_key_that_repeats_are_recognised_by_can_be_chosen():
    body = b'{"event_id":"e1","type":"a","n":5}'
    source = sources.hmac("partner", secret=SECRET, dedupe_by=(Field("event_id"), Field("n")))
    assert source.verify(body, {"x-signature": hex_of(SECRET, body)}, now=NOW).id == "e1:5"


@pytest.mark.parametrize(
    "bad", ['""', "null", "true", "1.5", "{}", '"a b"', '"a\\u0000"', '"' + "x" * 256 + '"']
)
def test_an_event_id_is_a_short_visible_text_or_a_whole_number(bad):
    body = b'{"event_id":%b}' % bad.encode()
    with pytest.raises(sources.VerifyError) as caught:
        Source(provider(), SECRET).verify(body, {"x-sig": hex_of(SECRET, body)}, now=NOW)
    assert caught.value.code == "malformed"


def test_every_named_provider_makes_a_source():
    for name in PROVIDERS:
        signed = SIGNERS.get(name, SIGNERS["standard"])
        assert sources.named(name, secret=signed[2]).name == name
    with pytest.raises(SourceError):
        sources.named("nobody", secret=SECRET)


def test_the_generic_sources_take_their_options():
    body = b'{"type":"a"}'
    partner = sources.hmac("partner", secret=SECRET, header="X-P", prefix="sha512=", algorithm="hmac-sha512")
    headers = {"x-p": "sha512=" + hex_of(SECRET, body, hashlib.sha512)}
    assert partner.verify(body, headers, now=NOW).type == "a"
    plain = sources.bearer("plain", secret=SECRET, header="X-Token", prefix="")
    assert plain.verify(body, {"x-token": SECRET}, now=NOW).proven == frozenset()
    assert plain.body_bytes == 1024 * 1024
    assert sources.bearer("small", secret=SECRET, body_bytes=5).body_bytes == 5


def test_the_scheme_of_a_bearer_is_the_same_in_any_case_and_the_token_is_not():
    source = sources.bearer("b", secret=SECRET)
    assert source.verify(b"1", {"authorization": f"bearer {SECRET}"}, now=NOW).provider == "b"
    for bad in (
        f"Bearer {SECRET.upper()}",
        f"Basic {SECRET}",
        f"Digest {SECRET}",
        SECRET,
        "Bearer ",
        f"Bearer  {SECRET}",
        "Bearer é",
    ):
        with pytest.raises(sources.VerifyError):
            source.verify(b"1", {"authorization": bad}, now=NOW)


def test_no_secret_is_in_the_text_of_a_message_or_of_a_source():
    body = b'{"type":"a"}'
    source = sources.named("standard", secret=sources.Key(WHSEC, "new"))
    message = source.verify(body, standard(body, WHSEC, NOW), now=NOW)
    assert message.key_id == "new"
    for shown in (message, source, source.provider, sources.Key(WHSEC)):
        assert WHSEC not in repr(shown)


def test_every_algorithm_of_the_record_works():
    for algorithm in ("hmac-sha1", "hmac-sha256", "hmac-sha512"):
        assert hmac_provider("x", algorithm=algorithm).scheme.algorithm == algorithm
    assert Source(provider(scheme=Signed(Header("X"), (BODY,), "ecdsa-p256-sha256")), der(P256))
    assert Source(provider(scheme=Signed(Header("X"), (Whole("crc32"),), "rsa-sha256")), pem(RSA))
