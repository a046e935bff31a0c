"""Events in: nothing that was published is changed, and nothing unsafe gets in."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import ids, limits
from surehook.core.envelope import (
    EventIn,
    decode_batch,
    decode_event,
)
from surehook.core.errors import Problem

EVENT_ID = ids.text("evt", ids.uuid7(1_700_000_000_000, bytes(range(10))))
FULL = {
    "tenant": "acme", "type": "document.signed", "data": {"a": 1}, "id": EVENT_ID, "subject": "doc_1", "sequence": 3,
    "schema_version": "2", "workflow_version": "7", "correlation_id": "c", "causation_id": "k", "source": "app",
    "occurred_at": "2026-11-21T10:46:00.123Z",
}  # fmt: skip


def raw(**changes):
    fields = {"tenant": "acme", "type": "a.b", "data": {}, **changes}
    return json.dumps(fields).encode()


def refusal(body):
    with pytest.raises(Problem) as caught:
        decode_event(body)
    return caught.value


def test_an_event_needs_tenant_type_and_data():
    assert decode_event(b'{"tenant":"acme","type":"a.b","data":{"x": 1}}') == EventIn(
        "acme", "a.b", b'{"x": 1}'
    )


def test_every_field_is_taken():
    event = decode_event(json.dumps(FULL).encode())
    assert event == EventIn(
        "acme", "document.signed", b'{"a": 1}', ids.parse("evt", EVENT_ID), "doc_1", 3, "2", "7", "c", "k", "app",
        1_795_257_960_123,
    )  # fmt: skip


@pytest.mark.parametrize(
    "data", ["null", "0", '"x"', "[]", "{}", "true", '{ "a" :\t[1 ,\n2 ]\r}', '{"a":1,"a":2}', '"\\u0041"']
)
@pytest.mark.parametrize(
    "form", ['{"tenant":"t","type":"a","data":%s}', ' { "data" : %s , "type" : "a" , "tenant" : "t" } ']
)
def test_data_is_kept_byte_for_byte_wherever_it_stands(data, form):
    assert decode_event((form % data).encode()).data == data.encode()


def test_a_null_is_an_absent_field():
    optional = {key: None for key in FULL if key not in ("tenant", "type", "data")}
    assert decode_event(raw(**optional)) == decode_event(raw())


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (b"", "invalid_json", None),
        (b"{", "invalid_json", None),
        (b"[]", "wrong_type", None),
        (b"null", "wrong_type", None),
        (b"\xef\xbb\xbf{}", "invalid_json", None),
        (b'{"tenant":"\xff","type":"a","data":1}', "invalid_json", None),
        (raw() + b"x", "invalid_json", None),
        (b'{"type":"a","data":1}', "missing_field", "tenant"),
        (b'{"tenant":"a","data":1}', "missing_field", "type"),
        (b'{"tenant":"a","type":"a"}', "missing_field", "data"),
        (raw(extra=1), "unknown_field", "extra"),
        (raw(idempotency_key="k"), "unknown_field", "idempotency_key"),
        (raw(tenant=1), "wrong_type", "tenant"),
        (raw(tenant=None), "wrong_type", "tenant"),
        (raw(type=["a"]), "wrong_type", "type"),
        (raw(subject=5), "wrong_type", "subject"),
        (raw(sequence="3"), "wrong_type", "sequence"),
        (raw(sequence=True), "wrong_type", "sequence"),
        (raw(sequence=1.5), "wrong_type", "sequence"),
        (raw(sequence=-1), "out_of_range", "sequence"),
        (raw(sequence=2**63), "out_of_range", "sequence"),
        (raw(sequence=2**64), "out_of_range", "sequence"),
        (raw(sequence=10**4000), "out_of_range", "sequence"),
        (b'{"tenant":"a","type":"a","data":1,"sequence":' + b"9" * 5000 + b"}", "number_out_of_range", "sequence"),
        (b'{"tenant":"a","type":"a","data":1,"sequence":1e400}', "number_out_of_range", "sequence"),
        (raw(type=""), "invalid_event_type", "type"),
        (raw(type="a b"), "invalid_event_type", "type"),
        (raw(type="a..b"), "invalid_event_type", "type"),
        (raw(type="x" * 10_240), "invalid_event_type", "type"),
        (raw(type="a\x00"), "invalid_event_type", "type"),
        (raw(subject="x" * 257), "too_long", "subject"),
        (raw(schema_version="x" * 65), "too_long", "schema_version"),
        (raw(workflow_version="x" * 65), "too_long", "workflow_version"),
        (raw(correlation_id="x" * 257), "too_long", "correlation_id"),
        (raw(causation_id="x" * 257), "too_long", "causation_id"),
        (raw(source="x" * 257), "too_long", "source"),
        (raw(subject="a\x00"), "bad_text", "subject"),
        (raw(subject="\ud800"), "bad_text", "subject"),
        (raw(data={"\ud83d\ude00\\": "\udc00x"}), "bad_text", "data"),
        (b'{"tenant":"acme","type":"a.b","data":{},"\\ud800":1}', "bad_text", None),
        (raw(id="evt_1"), "bad_id", "id"),
        (raw(id=""), "bad_id", "id"),
        (raw(id=EVENT_ID.replace("evt", "dlv")), "bad_id", "id"),
        (raw(id="evt_" + "0" * 26), "bad_id", "id"),
        (raw(occurred_at="yesterday"), "bad_time", "occurred_at"),
        (raw(occurred_at=1700000000), "wrong_type", "occurred_at"),
        (b'{"tenant":"a","type":"a","data":NaN}', "invalid_json", None),
        (b'{"tenant":"a","type":"a","data":1e400}', "number_out_of_range", "data"),
        (b'{"tenant":"a","type":"a","data":[' + b"9" * 5000 + b"]}", "number_out_of_range", "data"),
        (b'{"tenant":"a","type":"a","data":[' + b"9" * 400 + b"]}", "number_out_of_range", "data"),
        (b'{"tenant":"a","type":"a","data":' + b"[" * 65 + b"]" * 65 + b"}", "too_deep", "data"),
        (raw(data={"a": "b\x00"}), "bad_text", "data"),
        (raw(data={"\x00": 1}), "bad_text", "data"),
        (raw(data="\ud800"), "bad_text", "data"),
        (raw(data="x\udfff"), "bad_text", "data"),
        (raw(data="\U0001f600")[:-1], "invalid_json", None),
        (b'{"tenant":"a","type":"a","data":"\xff"}', "invalid_json", "data"),
        (b" " * (256 * 1024) + b"{}", "body_too_large", None),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_a_code_and_its_field(body, code, field):
    problem = refusal(body)
    assert (problem.code, problem.field) == (code, field)
    assert problem.status == (413 if code == "body_too_large" else 422)


def test_a_body_of_just_the_allowed_size_passes_and_one_byte_more_does_not():
    body = raw(data="x" * 1000)
    padded = raw(data="x" * (1000 + limits.EVENT_BODY_BYTES - len(body)))
    assert len(padded) == limits.EVENT_BODY_BYTES
    assert decode_event(padded).tenant == "acme"
    assert refusal(padded + b" ").code == "body_too_large"


def test_what_overruns_the_decoder_itself_is_too_deep_on_every_interpreter():
    """Older interpreters stop the decoder first (no field), newer ones leave the refusal to our own bound."""
    problem = refusal(b'{"tenant":"a","type":"a","data":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    assert problem.code == "too_deep"
    assert problem.field in (None, "data")


@pytest.mark.parametrize("sequence", [0, 1, 2**63 - 1])
def test_a_sequence_has_the_whole_range_of_a_signed_64_bit_number(sequence):
    assert decode_event(raw(sequence=sequence)).sequence == sequence


SPELLED = {
    "tenant": '"t\\u0065nant"',
    "type": '"\\u0074ype"',
    "data": '"d\\u0061ta"',
    "sequence": '"sequenc\\u0065"',
}


@pytest.mark.parametrize("key", ["tenant", "type", "data", "sequence", "subject", "id", "occurred_at"])
@pytest.mark.parametrize("first", [True, False])
def test_a_key_given_twice_is_refused(key, first):
    values = {**FULL, "sequence": 3}
    extra = f'"{key}":{json.dumps(values[key])}'
    text = json.dumps(FULL, separators=(",", ":"))
    body = "{" + extra + "," + text[1:] if first else text[:-1] + "," + extra + "}"
    problem = refusal(body.encode())
    assert (problem.code, problem.field) == ("duplicate_key", key)


@pytest.mark.parametrize("key", SPELLED)
def test_a_key_given_twice_in_another_spelling_is_refused(key):
    text = json.dumps(FULL)
    problem = refusal(f"{text[:-1]},{SPELLED[key]}:{json.dumps(FULL[key])}}}".encode())
    assert (problem.code, problem.field) == ("duplicate_key", key)


@pytest.mark.parametrize(
    "body",
    [
        b'{"tenant":"a","type":"b","data":1,"data":"x"}',
        b'{"data":{"data":1},"tenant":"a","type":"b","data":{"data":1}}',
        b'{"tenant":"a","type":"b","data":1,"sequence":null,"sequence":1}',
        b'{"tenant":"a","type":"b","sequence":1,"data":1,"sequence":1}',
        b'{"subject":null,"tenant":"a","subject":"b","type":"b","data":1}',
    ],
)
def test_hidden_repeats_of_a_key_are_found(body):
    assert refusal(body).code == "duplicate_key"


def test_escapes_and_keys_twice_inside_data_are_the_publishers_own():
    body = (
        b'{"tenant":"acme","type":"a.b","data":{"a\\"":1,"x":{"tenant":1,"tenant":2}},"subject":"q\\"\\\\"}'
    )
    assert decode_event(body).subject == 'q"\\'


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
OPTIONAL = {
    "subject": TEXT, "sequence": st.integers(0, 2**63 - 1), "schema_version": TEXT, "workflow_version": TEXT,
    "correlation_id": TEXT, "causation_id": TEXT, "source": TEXT,
}  # fmt: skip
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


@given(
    st.fixed_dictionaries({"data": JSON}, optional={key: st.none() | each for key, each in OPTIONAL.items()}),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_any_sound_event_is_read_as_it_was_written(given_fields, ascii_only, random):
    fields = [("tenant", "acme"), ("type", "a.b"), *given_fields.items()]
    random.shuffle(fields)
    event = decode_event(json.dumps(dict(fields), ensure_ascii=ascii_only).encode())
    assert event.data == json.dumps(given_fields["data"], ensure_ascii=ascii_only).encode()
    assert all(getattr(event, key) == given_fields.get(key) for key in OPTIONAL)


BROKEN = st.binary(max_size=80) | st.builds(
    lambda fields, at, junk: (text := json.dumps(fields).encode())[:at] + junk + text[at:],
    st.dictionaries(st.sampled_from(list(FULL)), JSON | st.sampled_from([*FULL.values()]), max_size=6),
    st.integers(0, 60),
    st.binary(max_size=3) | st.sampled_from([b"\\u0000", b"\\", b'"', b'"data":1,', b"1e999"]),
)


@given(BROKEN)
def test_any_bytes_are_an_event_or_a_problem(body):
    try:
        event = decode_event(body)
    except Problem as problem:
        refused = problem.code
    else:
        refused = None
        assert json.loads(event.data) == json.loads(body)["data"]
    (item,) = decode_batch(b"[" + body + b"]") if refused is None else (None,)
    assert refused or item == event


# -- batches ----------------------------------------------------------------------------------------------


def test_a_batch_is_read_in_order_with_each_bad_item_in_its_place():
    items = decode_batch(
        b"[" + b",".join([raw(), raw(type="a b"), b"5", raw(idempotency_key="k"), raw(x=1)]) + b"]"
    )
    assert [type(item) for item in items] == [EventIn, Problem, Problem, EventIn, Problem]
    assert [(item.code, item.field) for item in items if isinstance(item, Problem)] == [
        ("invalid_event_type", "type"),
        ("wrong_type", None),
        ("unknown_field", "x"),
    ]
    assert items[3].idempotency_key == "k"


@pytest.mark.parametrize("key", ["", "x" * 256, "a b", "a\n", "é"])
def test_an_items_idempotency_key_is_checked(key):
    (item,) = decode_batch(b"[" + raw(idempotency_key=key) + b"]")
    assert (item.code, item.field) == ("invalid_idempotency_key", "idempotency_key")


def test_an_item_with_a_key_twice_is_refused():
    (item,) = decode_batch(
        b'[{"tenant":"a","type":"b","data":1,"idempotency_key":"k","idempotency_key":"k"}]'
    )
    assert (item.code, item.field) == ("duplicate_key", "idempotency_key")


def test_an_items_data_is_kept_byte_for_byte():
    items = decode_batch(b' [ {"tenant":"a","type":"b","data": { "x" : 1 } } , ' + raw() + b" ] ")
    assert [item.data for item in items] == [b'{ "x" : 1 }', b"{}"]


def test_half_of_a_surrogate_pair_spoils_its_own_item_only():
    good, bad = (
        b'{"tenant":"t","type":"a","data":"\\ud83d\\ude00\\\\ud800" }',
        b'{"tenant":"t","type":"a","data":"\\ud800"}',
    )
    one, two, three, four = decode_batch(
        b" [" + bad + b", " + good + b" ,7," + bad.replace(b"a", b"\\ud800", 1) + b"]"
    )
    assert (one.code, one.field) == ("bad_text", "data")
    assert two.data == b'"\\ud83d\\ude00\\\\ud800"'
    assert three.code == "wrong_type" and four.code == "bad_text"


def test_an_item_over_the_size_of_an_event_is_refused_alone():
    items = decode_batch(b"[" + raw(data="x" * limits.EVENT_BODY_BYTES) + b"," + raw() + b"]")
    assert (items[0].code, items[0].status) == ("body_too_large", 413)
    assert isinstance(items[1], EventIn)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{}", "wrong_type"),
        (raw(), "wrong_type"),
        (b"", "invalid_json"),
        (b"[1,", "invalid_json"),
        (b"[" + b"1," * 1000 + b"1]", "too_many_events"),
        (b"[" * 1_000_000 + b"]" * 1_000_000, "too_deep"),
        (b"[" + b" " * (8 * 1024 * 1024) + b"]", "body_too_large"),
    ],
)
def test_only_what_is_no_batch_fails_as_a_whole(body, code):
    with pytest.raises(Problem) as caught:
        decode_batch(body)
    assert caught.value.code == code


def test_an_empty_batch_is_empty_and_a_thousand_events_are_a_batch():
    assert decode_batch(b"[]") == []
    assert len(decode_batch(b"[" + b",".join([raw()] * 1000) + b"]")) == 1000
