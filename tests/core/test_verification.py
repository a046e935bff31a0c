"""What a sender may send to a verifier: one table of messages, one kind of error."""

import base64
import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import signature
from surehook.core.verification import Key, Verified, Verifier, VerifyError, verify

NOW = 1_700_000_000
ID = "evt_01hf3n0000aaaaaaaaaaaaaaaa"
BODY = b'{"a": 1, "b": "\xc3\xa9"}'
MATERIAL = b"s" * 32
SECRET = signature.write_secret("v1", MATERIAL)
OTHER = signature.write_secret("v1", b"o" * 32)
SEED = b"e" * 32
PUBLIC = signature.write_public_key(SEED)


def signed(msg_id=ID, stamp=NOW, body=BODY, material=MATERIAL):
    return signature.sign(material, msg_id, stamp, body).decode()


def message(value=None, *, msg_id=ID, stamp=NOW, **extra):
    return {
        "webhook-id": msg_id,
        "webhook-timestamp": str(stamp),
        "webhook-signature": signed(msg_id, NOW if isinstance(stamp, str) else stamp)
        if value is None
        else value,
        **extra,
    }


def refused(headers, body=BODY, *, keys=SECRET, now=NOW, **options):
    with pytest.raises(VerifyError) as caught:
        verify(keys, headers, body, now=now, **options)
    return caught.value.code


def test_a_message_signed_with_v1_is_believed():
    assert verify(SECRET, message(), BODY, now=NOW) == Verified(ID, NOW, Key(SECRET))


def test_a_message_signed_with_v1a_is_believed():
    value = signature.sign_v1a(SEED, ID, NOW, BODY).decode()
    assert verify(PUBLIC, message(value), BODY, now=NOW).key == Key(PUBLIC)
    assert refused(message(value), BODY + b" ", keys=PUBLIC) == "bad_signature"
    assert refused(message(value), keys=SECRET) == "bad_signature"


def test_a_body_may_be_text_and_stands_for_its_utf8_bytes():
    assert verify(SECRET, message(), BODY.decode(), now=NOW).id == ID
    assert refused(message(), "\ud800") == "bad_signature"


@pytest.mark.parametrize(
    "headers",
    [
        {name.upper(): value for name, value in message().items()},
        {name.title().encode(): value.encode() for name, value in message().items()},
        list(message().items()),
        [(name.encode(), value.encode()) for name, value in message().items()],
        {name.replace("webhook", "svix"): value for name, value in message().items()},
        {**message(), **{name.replace("webhook", "Svix"): value for name, value in message().items()}},
        {**message(), "content-type": "x", "webhook-attempt": "1", "x": "\xff"},
        {name: f" {value}\t" for name, value in message().items()},
    ],
)  # fmt: skip
def test_names_in_any_case_and_form_are_found(headers):
    assert verify(SECRET, headers, BODY, now=NOW).id == ID


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_missing_header_is_named(name):
    headers = message()
    del headers[name]
    assert refused(headers) == "missing_header"


@pytest.mark.parametrize("place", [0, 1, 15, 31])
def test_one_valid_signature_among_32_is_enough(place):
    parts = [signed(material=bytes([65 + number]) * 32) for number in range(32)]
    parts[place] = signed()
    assert verify(SECRET, message(" ".join(parts)), BODY, now=NOW).id == ID


def test_33_signatures_are_refused_even_with_a_valid_one():
    assert refused(message(" ".join([signed()] * 33))) == "too_many_signatures"
    assert refused(message(signed() + " v1," + "A" * 5000)) == "too_many_signatures"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_a_header_given_twice_is_refused(name):
    headers = [*message().items(), (name, message()[name])]
    assert refused(headers) == "duplicate_header"
    assert refused([*message().items(), (name.title(), "x")]) == "duplicate_header"


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@pytest.mark.parametrize("join", [",", ", "])
def test_a_header_joined_from_two_is_refused(name, join):
    headers = message()
    headers[name] = join.join([headers[name], headers[name]])
    assert refused(headers) in ("duplicate_header", "bad_id", "bad_timestamp")


@pytest.mark.parametrize("part", ["id", "timestamp", "signature"])
def test_both_families_with_different_values_are_refused(part):
    other = {"id": "evt_x", "timestamp": str(NOW + 1), "signature": signed(material=b"x" * 32)}[part]
    assert refused({**message(), f"svix-{part}": other}) == "duplicate_header"


@pytest.mark.parametrize(
    "junk", ["", "v1", "v1,", ",x", "v1,,x", "v1,x,y", " ", ",", ",,", "v1 ,", "\x00", "é", "v1,é"]
)
def test_an_unreadable_signature_is_refused(junk):
    assert refused(message(junk)) in ("bad_signature", "duplicate_header")


@pytest.mark.parametrize("junk", ["v1", ",x", "v1,,x", "v1,x,y", "", "v2,AAAA", "v1,é", "noise"])
def test_unreadable_parts_beside_a_valid_one_are_passed_over(junk):
    assert verify(SECRET, message(f"{junk} {signed()}"), BODY, now=NOW).id == ID
    assert verify(SECRET, message(f"{signed()} {junk}"), BODY, now=NOW).id == ID


@pytest.mark.parametrize("version", ["v2", "V1", "v1b", "v", "", "v01", "v1a", "hmac"])
def test_a_signature_of_an_unknown_version_counts_for_nothing(version):
    assert refused(message(version + "," + signed().partition(",")[2])) == "bad_signature"


def spoilt():
    """One good signature in spellings that a careless base64 decoder would take."""
    text = signed().removeprefix("v1,")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = alphabet[alphabet.index(text[-2]) ^ 1]
    raw = base64.b64decode(text)
    return {
        "url-safe alphabet": base64.urlsafe_b64encode(b"\xff" * 32).decode(),
        "no padding": text.rstrip("="),
        "double padding": text + "=",
        "junk inside": text[:10] + "!" + text[10:],
        "line end inside": text[:10] + "\n" + text[10:],
        "tab inside": text[:10] + "\t" + text[10:],
        "spare bits set": text[:-2] + last + "=",
        "hex": raw.hex(),
        "hex in base64": base64.b64encode(raw.hex().encode()).decode(),
        "first eight characters": text[:8],
        "one byte short": base64.b64encode(raw[:-1]).decode(),
        "one byte long": base64.b64encode(raw + b"\x00").decode(),
        "bytes reversed": base64.b64encode(raw[::-1]).decode(),
    }


@pytest.mark.parametrize("how", spoilt())
def test_only_canonical_base64_of_the_right_bytes_is_a_signature(how):
    assert refused(message("v1," + spoilt()[how])) == "bad_signature"


@pytest.mark.parametrize("algorithm", [hashlib.sha1, hashlib.sha512, hashlib.sha384])
def test_other_hashes_are_refused(algorithm):
    content = f"{ID}.{NOW}.".encode() + BODY
    value = base64.b64encode(hmac.new(MATERIAL, content, algorithm).digest()).decode()
    assert refused(message("v1," + value)) == "bad_signature"


@pytest.mark.parametrize(
    ("offset", "code"),
    [(-301, "too_old"), (-300, None), (0, None), (300, None), (301, "too_new")],
)
def test_both_edges_of_the_tolerance_are_inside(offset, code):
    headers = message(stamp=NOW + offset)
    if code is None:
        assert verify(SECRET, headers, BODY, now=NOW).timestamp == NOW + offset
    else:
        assert refused(headers) == code


def test_the_tolerance_can_be_set():
    assert refused(message(stamp=NOW - 6), tolerance_s=5) == "too_old"
    assert verify(SECRET, message(stamp=NOW - 600), BODY, now=NOW, tolerance_s=600).timestamp == NOW - 600


@pytest.mark.parametrize(
    "stamp",
    ["", " ", "x", "-1", "+1", "1.0", "1e9", "1_700_000_000", "0x10", "١٢٣", f"{NOW}.0", f"{NOW}x", "9" * 13, f"{NOW}\n", f"{NOW} 1"],
)  # fmt: skip
def test_a_timestamp_is_digits(stamp):
    assert refused(message(stamp=stamp)) == "bad_timestamp"


@pytest.mark.parametrize("msg_id", ["", "x" * 129, "a.b", "a b", "a\x00", "a\nb", "é", "a/b", "a\n"])
def test_an_id_is_1_to_128_plain_characters(msg_id):
    assert refused(message(signed(), msg_id=msg_id)) == "bad_id"


def test_an_id_with_a_full_stop_cannot_stand_for_another_body():
    """`a` with body `1.b` and `a.1` with body `b` would be signed over the same bytes."""
    value = signed("a", NOW, f"{NOW}.b".encode())
    forged = {"webhook-id": f"a.{NOW}", "webhook-timestamp": str(NOW), "webhook-signature": value}
    assert refused(forged, b"b") == "bad_id"


@pytest.mark.parametrize(
    "body",
    [
        b"", BODY + b" ", b" " + BODY, BODY + b"\n", b"\xef\xbb\xbf" + BODY, BODY.replace(b" ", b""),
        json.dumps(dict(reversed(json.loads(BODY).items()))).encode(),
    ],
)  # fmt: skip
def test_another_body_is_refused(body):
    assert refused(message(), body) == "bad_signature"


def test_every_single_bit_of_the_body_counts():
    for place in range(len(BODY) * 8):
        changed = bytearray(BODY)
        changed[place // 8] ^= 1 << place % 8
        assert refused(message(), bytes(changed)) == "bad_signature"


@pytest.mark.parametrize("change", [{"msg_id": ID[:-1] + "b"}, {"stamp": NOW + 1}])
def test_another_id_or_timestamp_is_refused(change):
    assert refused(message(signed(), **change)) == "bad_signature"


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"\x00" * 10, b"not json", b"[" * 100_000])
def test_bytes_are_verified_as_they_came_whatever_they_are(body):
    assert verify(SECRET, message(signed(body=body)), body, now=NOW).id == ID


# -- keys -------------------------------------------------------------------------------------------------


def test_a_key_of_somebody_else_is_refused():
    assert refused(message(), keys=OTHER) == "bad_signature"


def test_an_old_key_holds_during_the_overlap_and_not_after():
    keys = [Key(OTHER, "new"), Key(SECRET, "old", not_after=NOW + 10)]
    assert verify(keys, message(), BODY, now=NOW + 9).key.id == "old"
    assert refused(message(), keys=keys, now=NOW + 10) == "key_not_valid"


def test_a_message_signed_with_both_keys_is_believed_through_the_rotation():
    both = f"{signed(material=b'o' * 32)} {signed()}"
    keys = [Key(SECRET, "old", not_after=NOW), Key(OTHER, "new", not_before=NOW - 5)]
    assert verify(keys, message(both), BODY, now=NOW).key.id == "new"


def test_a_key_does_not_hold_before_its_time():
    key = Key(SECRET, "next", not_before=NOW + 1)
    assert refused(message(), keys=key) == "key_not_valid"
    assert verify(key, message(), BODY, now=NOW + 1).key.id == "next"


def point(y):
    return "whpk_" + base64.b64encode(y.to_bytes(32, "little")).decode()


P = 2**255 - 19
ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
SMALL = [y + sign for y in (0, 1, P - 1, P, P + 1, ORDER_8, P - ORDER_8) for sign in (0, 2**255)]


@pytest.mark.parametrize(
    "key",
    [
        "", "whsec_", "whsec_QUE=", signature.PREFIX_SECRET + base64.b64encode(b"x" * 23).decode(),
        signature.PREFIX_SECRET + base64.b64encode(b"x" * 65).decode(), "whsec_!!!!", MATERIAL.decode(),
        PUBLIC.replace("whpk_", ""), signature.write_secret("v1a", SEED), "whpk_", "whpk_QUE=",
        signature.write_secret("v1", MATERIAL).replace("whsec_", "whpk_") + "AAAA", "whpk_!", *map(point, SMALL),
    ],
)  # fmt: skip
def test_a_key_that_must_not_be_trusted_is_refused_when_configured(key):
    with pytest.raises(VerifyError) as caught:
        Verifier(key)
    assert caught.value.code == "bad_secret"
    assert not key or key not in str(caught.value)


def test_a_public_key_never_acts_as_an_hmac_secret():
    raw = base64.b64decode(PUBLIC.removeprefix("whpk_"))
    assert refused(message(signed(material=raw)), keys=PUBLIC) == "bad_signature"


def test_a_small_order_key_would_accept_a_forgery():
    """Why those keys are refused: the identity point accepts R = identity, S = 0 for every message."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    identity = (1).to_bytes(32, "little")
    Ed25519PublicKey.from_public_bytes(identity).verify(identity + bytes(32), b"anything at all")


def test_an_ed25519_signature_with_a_shifted_scalar_is_refused():
    order = 2**252 + 27742317777372353535851937790883648493
    raw = base64.b64decode(signature.sign_v1a(SEED, ID, NOW, BODY).removeprefix(b"v1a,"))
    shifted = raw[:32] + (int.from_bytes(raw[32:], "little") + order).to_bytes(32, "little")
    assert refused(message("v1a," + base64.b64encode(shifted).decode()), keys=PUBLIC) == "bad_signature"


@pytest.mark.parametrize("keys", [[], (), [None], [5], [Key(None)], [SECRET, ""]])
def test_keys_are_texts(keys):
    assert refused(message(), keys=keys) == "bad_secret"


def test_every_signature_is_compared_with_every_key(monkeypatch):
    """No early exit: how long a refusal takes says nothing about how near it was."""
    compared = []
    genuine = hmac.compare_digest
    monkeypatch.setattr(hmac, "compare_digest", lambda one, other: compared.append(1) or genuine(one, other))
    keys = [SECRET, OTHER, signature.write_secret("v1", b"t" * 32)]
    for place in range(4):
        parts = [signed(material=b"x" * 32)] * 4
        parts[place] = signed()
        verify(keys, message(" ".join(parts)), BODY, now=NOW)
    assert len(compared) == 4 * 4 * 3


# -- whatever is handed in --------------------------------------------------------------------------------

ANY = st.none() | st.integers() | st.text(max_size=40) | st.binary(max_size=40)
NAMES = st.sampled_from([*message(), *(name.replace("webhook", "svix") for name in message()), "X"])
NEARLY = st.builds(
    lambda base, changes: {**base, **changes},
    st.just(message()),
    st.dictionaries(NAMES | ANY, ANY | st.text("v1a, =AZ09+/", max_size=60), max_size=3),
)


@given(
    headers=NEARLY | st.lists(st.tuples(NAMES, ANY)) | st.lists(ANY) | ANY,
    body=ANY,
    now=st.floats() | st.integers() | st.none(),
)
def test_whatever_is_handed_in_only_a_verify_error_comes_out(headers, body, now):
    try:
        believed = verify([SECRET, PUBLIC], headers, body, now=now)
    except VerifyError as error:
        told = error.code
    else:
        told = believed.id
    assert told == ID or told.isidentifier()


@given(st.lists(ANY, max_size=3) | ANY)
def test_whatever_is_given_as_a_key_only_a_verify_error_comes_out(keys):
    with pytest.raises(VerifyError):
        Verifier(keys)
