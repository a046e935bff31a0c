"""Signing and the writing of secrets."""

import base64
import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import signature
from surehook.core.model import Secret
from surehook.core.signature import SecretError, Signer

# Published vectors of the Standard Webhooks libraries (v1) and of the Svix server (v1a).
ID, STAMP, BODY = "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}'
V1_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
V1_SIGNATURE = b"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
V1A_SECRET = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
V1A_PUBLIC = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
V1A_SIGNATURE = (
    b"v1a,hnO3f9T8Ytu9HwrXslvumlUpqtNVqkhqw/enGzPCXe5BdqzCInXqYXFymVJaA7AZdpXwVLPo3mNl8EM+m7TBAg=="
)


def secret(kind="v1", material=b"k" * 32, number=1):
    return Secret(
        id=bytes([number]) * 16,
        endpoint=b"e" * 16,
        kind=kind,
        material=material,
        created_at=0,
        expires_at=None,
    )


def test_v1_agrees_with_the_published_vectors():
    kind, material = signature.read_secret(V1_SECRET)
    assert kind == "v1"
    assert signature.sign(material, ID, STAMP, BODY) == V1_SIGNATURE
    _, other = signature.read_secret("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
    body = b'{"email":"test@example.com","username":"test_user"}'
    assert (
        signature.sign(other, "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1649367553, body)
        == b"v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="
    )


def test_v1a_agrees_with_the_published_vector():
    kind, seed = signature.read_secret(V1A_SECRET)
    assert kind == "v1a"
    assert signature.sign_v1a(seed, ID, STAMP, BODY) == V1A_SIGNATURE
    assert signature.write_public_key(seed) == V1A_PUBLIC


@given(st.binary(min_size=24, max_size=64), st.integers(0, 10**11), st.binary(max_size=300))
def test_a_prepared_signer_signs_as_the_plain_function(material, stamp, body):
    signer = Signer([secret(material=material)], ["sec_1"])
    assert signer.sign(ID.encode(), str(stamp).encode(), body) == signature.sign(material, ID, stamp, body)
    expected = hmac.new(material, b"%b.%d.%b" % (ID.encode(), stamp, body), hashlib.sha256).digest()
    assert signature.sign(material, ID, stamp, body) == b"v1," + base64.b64encode(expected)


@pytest.mark.parametrize(
    "kinds", [("v1", "v1"), ("v1", "v1a"), ("v1a", "v1"), ("v1a",), ("v1", "v1", "v1a", "v1")]
)
def test_every_active_secret_signs_in_the_order_of_the_key_ids(kinds):
    materials = [bytes([65 + place]) * 32 for place in range(len(kinds))]
    signer = Signer(
        [secret(kind, material) for kind, material in zip(kinds, materials, strict=True)],
        [f"sec_{place}" for place in range(len(kinds))],
    )
    by_kind = {"v1": signature.sign, "v1a": signature.sign_v1a}
    expected = [
        by_kind[kind](material, ID, STAMP, BODY) for kind, material in zip(kinds, materials, strict=True)
    ]
    assert signer.sign(ID.encode(), b"%d" % STAMP, BODY) == b" ".join(expected)
    assert signer.key_ids == b" ".join(b"sec_%d" % place for place in range(len(kinds)))


def test_a_signer_signs_many_messages_independently():
    signer = Signer([secret()], ["sec_1"])
    first = signer.sign(b"a", b"1", b"x")
    signer.sign(b"b", b"2", b"y")
    assert signer.sign(b"a", b"1", b"x") == first


@pytest.mark.parametrize(("count", "ids"), [(0, 0), (33, 33), (2, 1)])
def test_a_signer_needs_one_to_32_secrets_each_with_its_id(count, ids):
    with pytest.raises(SecretError):
        Signer([secret()] * count, ["sec_1"] * ids)


@given(st.binary(min_size=24, max_size=64))
def test_a_generated_secret_is_read_back(entropy):
    text = signature.generate_secret(entropy)
    assert text.startswith("whsec_")
    assert signature.read_secret(text) == ("v1", entropy)
    assert signature.read_secret(text.rstrip("=")) == ("v1", entropy)


@given(st.binary(min_size=32, max_size=32))
def test_a_private_key_is_read_back_from_both_forms(seed):
    text = signature.write_secret("v1a", seed)
    assert text.startswith("whsk_")
    assert signature.read_secret(text) == ("v1a", seed)
    assert signature.read_secret("whsk_" + base64.b64encode(seed).decode()) == ("v1a", seed)
    assert (
        signature.public_key(seed)
        == Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    )


def b64(raw):
    return base64.b64encode(raw).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "whsec_",
        "whsec_" + b64(b"x"),
        "whsec_" + b64(b"x" * 23),
        "whsec_" + b64(b"x" * 65),
        "whsec_!" + b64(b"x" * 32),
        "whsec_" + b64(b"x" * 32) + "==",
        "whsec_" + b64(b"\xff" * 32).replace("/", "_"),
        "whsec_" + b64(b"x" * 32)[:-2] + "B=",
        "whsec_ " + b64(b"x" * 32),
        "whsec_" + b64(b"x" * 32) + "\n",
        "whsec_é" + b64(b"x" * 32),
        b64(b"x" * 32),
        "WHSEC_" + b64(b"x" * 32),
        V1A_PUBLIC,
        "whsk_" + b64(b"x" * 31),
        "whsk_" + b64(b"x" * 64),
        "whsk_",
    ],
)
def test_what_cannot_be_a_secret_is_refused_without_repeating_it(text):
    with pytest.raises(SecretError) as caught:
        signature.read_secret(text)
    assert not text or text not in str(caught.value)


@pytest.mark.parametrize(
    ("kind", "size"), [("v1", 23), ("v1", 65), ("v1", 0), ("v1a", 31), ("v1a", 33), ("v2", 32)]
)
def test_material_of_a_wrong_kind_or_size_cannot_be_written(kind, size):
    with pytest.raises(SecretError):
        signature.write_secret(kind, b"x" * size)


@given(st.text(max_size=100) | st.text("whsec_pkAB=/+", max_size=60).map("whsec_".__add__))
def test_any_text_is_a_secret_or_a_secret_error(text):
    try:
        kind, material = signature.read_secret(text)
    except SecretError:
        return
    assert signature.read_secret(signature.write_secret(kind, material)) == (kind, material)
