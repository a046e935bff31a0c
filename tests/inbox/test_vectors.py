"""Messages signed by the providers themselves, or by their own libraries: `vectors.json` names where each comes from."""

import base64
import json
from pathlib import Path

import pytest

import surehook

VECTORS = json.loads((Path(__file__).parent / "vectors.json").read_text())


def told(vector, **changes):
    """The message, or the code of its refusal."""
    given = {**vector, "body": base64.b64decode(vector["body"]), **changes}
    try:
        return surehook.verify(
            given["provider"],
            given["body"],
            given["headers"],
            given["secret"],
            now=given["now"],
            url=given.get("url"),
            known=given.get("known"),
        )
    except surehook.VerifyError as refusal:
        return refusal.code


@pytest.mark.parametrize("vector", VECTORS, ids=[one["name"] for one in VECTORS])
def test_what_a_provider_signed_is_believed(vector):
    """`code` stands where the signature holds and the body is not what the provider sends as an event."""
    message = told(vector)
    if "code" in vector:
        assert message == vector["code"]
        return
    assert message.provider == vector["provider"]
    for name in ("id", "type"):
        assert vector.get(name) in (None, getattr(message, name))
    if "proven" in vector:
        assert sorted(message.proven) == vector["proven"]
    if "items" in vector:
        assert [one.id for one in message.each()] == vector["items"]


@pytest.mark.parametrize("vector", VECTORS, ids=[one["name"] for one in VECTORS])
def test_the_same_with_anything_else_changed_is_refused(vector):
    body = base64.b64decode(vector["body"])
    if vector["provider"] != "dropbox_sign":  # which signs no body
        assert told(vector, body=body + b"x") in ("bad_signature", "malformed")
        assert told(vector, body=b"9" + body) in ("bad_signature", "malformed")
    if "-----BEGIN" not in str(vector["secret"]) and vector["provider"] not in ("sendgrid", "standard"):
        assert told(vector, secret="another") == "bad_signature"
    for name, value in vector["headers"].items():
        if name in ("PAYPAL-AUTH-ALGO",) or name.startswith("X-GitHub") or name == "Content-Type":
            continue
        spoilt = value[:-6] + ("000000" if value[-6:] != "000000" else "111111")
        assert isinstance(told(vector, headers={**vector["headers"], name: spoilt}), str), name


def test_every_vector_names_its_source():
    assert all(len(vector["source"]) > 20 for vector in VECTORS)
