"""Events out: the body's bytes and the digest that tells repeats."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import envelope, ids
from surehook.core.envelope import decode_batch, decode_event, digest, digest_of, render_body, split_data

EVENT_ID = ids.text("evt", ids.uuid7(1_700_000_000_000, bytes(range(10))))
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


OUT = {
    "id": EVENT_ID, "type": "a.b", "timestamp": "2026-11-21T10:46:00.123Z", "tenant": "acme", "schema_version": "1",
}  # fmt: skip


def test_absent_fields_are_left_out():
    assert render_body(**OUT, data=b'{ "x":1}') == (
        b'{"id":"%b","type":"a.b","timestamp":"2026-11-21T10:46:00.123Z","tenant":"acme","schema_version":"1",'
        b'"data":{ "x":1}}' % EVENT_ID.encode()
    )


@given(TEXT, JSON)
def test_what_plain_events_have_in_common_is_rendered_once_and_is_the_same(tenant, value):
    data = json.dumps(value).encode()
    frame = envelope.Frame(type="a.b", tenant=tenant, schema_version="1")
    given = {**OUT, "tenant": tenant}
    assert frame.body(id=EVENT_ID, timestamp=OUT["timestamp"], data=data) == render_body(**given, data=data)
    assert frame.digest(data) == digest(tenant, "a.b", *[None] * 8, data)


def test_the_order_of_keys_is_fixed():
    body = render_body(
        **OUT, data=b"1", source="s", causation_id="k", correlation_id="c", workflow_version="7", sequence=0, subject="d"
    )  # fmt: skip
    assert list(json.loads(body)) == [
        "id", "type", "timestamp", "tenant", "schema_version", "subject", "sequence", "workflow_version",
        "correlation_id", "causation_id", "source", "data",
    ]  # fmt: skip


@given(JSON, TEXT, st.booleans())
def test_data_comes_out_of_a_body_as_it_went_in(data, subject, ascii_only):
    written = json.dumps(data, ensure_ascii=ascii_only, indent=1).encode()
    body = render_body(**OUT, data=written, subject=subject, source='","data":"')
    assert split_data(body) == written
    assert json.loads(body)["subject"] == subject
    assert json.loads(body)["data"] == json.loads(written)


# -- the digest -------------------------------------------------------------------------------------------

SAID = ("acme", "a.b", "doc", 1, "1", "2", "c", "k", 1_700_000_000_000, "s", b"{}")


def test_a_digest_is_32_bytes_of_sha256_and_never_changes():
    """The digest is kept in the ledger: a change of this value would make every repeat a conflict."""
    assert digest(*SAID).hex() == "dc49cee90d39c809ddab6bea3dddeef28917079f90ede9d6362d20ee613aed09"
    assert digest(*SAID) == hashlib.sha256(envelope._pack(SAID[:10]) + b"{}").digest()


@pytest.mark.parametrize("place", range(len(SAID)))
def test_each_field_changes_the_digest(place):
    other = list(SAID)
    other[place] = 2 if isinstance(SAID[place], int) else SAID[place] + SAID[place][:1]
    assert digest(*other) != digest(*SAID)
    if place not in (0, 1, 10):
        absent = list(SAID)
        absent[place] = None
        assert digest(*absent) not in (digest(*SAID), digest(*other))


def test_fields_do_not_run_into_one_another():
    seen = set()
    for left, right in [("ab", "c"), ("a", "bc"), ("abc", None), (None, "abc"), ("", "abc"), ("abc", "")]:
        seen.add(digest("t", "e", left, None, right, None, None, None, None, None, b"1"))
    assert len(seen) == 6


def test_absent_is_not_empty_and_a_number_is_not_its_text():
    def of(subject):
        return digest("t", "e", subject, None, None, None, None, None, None, None, b"1")

    assert len({of(None), of(""), of("0"), of("null")}) == 4


def raw(**changes):
    return json.dumps({"tenant": "acme", "type": "a.b", "data": {}, **changes}).encode()


def event(**changes):
    return decode_event(raw(**changes))


def test_the_digest_of_an_event_leaves_its_names_out():
    plain = event(subject="s")
    named = event(subject="s", id=EVENT_ID)
    (keyed,) = decode_batch(b"[" + raw(subject="s", idempotency_key="k") + b"]")
    assert digest_of(plain) == digest_of(named) == digest_of(keyed)
    assert digest_of(plain) != digest_of(event(subject="t"))
    assert digest_of(plain) == digest("acme", "a.b", "s", None, None, None, None, None, None, None, b"{}")
