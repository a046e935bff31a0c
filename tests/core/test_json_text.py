"""JSON from strangers: the quick answers agree with slow and obvious ones."""

import itertools
import json
import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import json_text

DEPTH, DIGITS = 64, 308


def flaw(data):
    return json_text.flaw(data, depth=DEPTH, digits=DIGITS)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"null", None),
        (b'{"a":[1,-2.5e10,"\\u00e9\\n",true]}', None),
        (b'"\\ud83d\\ude00"', None),
        (b"[" * 64 + b"]" * 64, None),
        (b"[" * 65 + b"]" * 65, "too_deep"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "too_deep"),
        (b"[" * 100_000 + b"]" * 100_000, "too_deep"),
        (b"[" * 100_000, "too_deep"),
        (b"[" + b"[]," * 1000 + b"[]]", None),
        (b'"' + b"[" * 1000 + b'"', None),
        (b'["' + b'\\"[' * 1000 + b'"]', None),
        (b'{"}":' * 65 + b"1" + b"}" * 65, "too_deep"),
        (b'{"}":' * 64 + b"1" + b"}" * 64, None),
        (b'{"{":' + b'{"}":' * 64 + b"1" + b"}" * 65, "too_deep"),
        (b"1e308", None),
        (b"1e309", "number_out_of_range"),
        (b"[-1e400]", "number_out_of_range"),
        (b"9" * 308, None),
        (b"9" * 309, "number_out_of_range"),
        (b"[1," + b"9" * 5000 + b"]", "number_out_of_range"),
        (b'"' + b"9" * 5000 + b'"', None),
        (b'"\\"' + b"9" * 5000 + b'"', None),
        (b"1e-400", None),
        (b'"\\u0000"', "bad_text"),
        (b'{"\\u0000":1}', "bad_text"),
        (b'"\\\\u0000"', None),
        (b'"\\\\\\u0000"', "bad_text"),
        (b'"\\u00000"', "bad_text"),
        (b'"\\u00001"', "bad_text"),
        (b'"\\ud800"', "invalid_json"),
        (b'"\\ud800x"', "invalid_json"),
        (b'"\\udc00"', "invalid_json"),
        (b'{"\\ud800":1}', "invalid_json"),
        (b'"\xed\xa0\x80"', "invalid_json"),
        (b'"\xff"', "invalid_json"),
        (b'"a\x00b"', "invalid_json"),
        (b"NaN", "invalid_json"),
        (b"[Infinity]", "invalid_json"),
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b"1 2", "invalid_json"),
        (b"\xef\xbb\xbf1", "invalid_json"),
        (b"01", "invalid_json"),
    ],
)  # fmt: skip
def test_a_value_is_sound_or_has_one_flaw(data, code):
    assert flaw(data) == code


def depth_of(value):
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 0


TEXTS = st.text('{}[]":,\\ab', max_size=6)
VALUES = st.recursive(
    TEXTS | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=20,
)


@given(VALUES, st.integers(0, 8))
def test_depth_is_what_walking_the_value_says(value, limit):
    assert json_text.is_deeper(json.dumps(value).encode(), limit) is (depth_of(value) > limit)


def spent(data: bytes) -> float:
    """Seconds of the processor to tell its depth."""
    begun = time.process_time()
    assert not json_text.is_deeper(data, 64)
    return time.process_time() - begun


def test_what_is_deep_everywhere_costs_about_what_is_flat():
    """Two to three times as much; taken away level by level to the end it was forty times."""
    flat, deep = b"[]" * 125_000, (b"[" * 62 + b"]" * 62) * 2_000
    assert min(spent(deep) for _ in range(5)) < 12 * min(spent(flat) for _ in range(5))


def has_nul(value):
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, list):
        return any(map(has_nul, value))
    if isinstance(value, dict):
        return any(map(has_nul, [*value, *value.values()]))
    return False


@given(
    st.recursive(
        st.text("\x00\\u0a", max_size=6),
        lambda inner: st.lists(inner) | st.dictionaries(st.text("\x00\\u0", max_size=4), inner),
    )
)
def test_a_nul_is_found_where_walking_the_value_finds_one(value):
    assert json_text.has_nul(json.dumps(value).encode()) is has_nul(value)


@given(st.lists(st.tuples(st.text('ab"\\\x00:{}', max_size=3), VALUES), max_size=5))
def test_a_key_given_twice_is_found_at_the_outermost_level_only(pairs):
    text = "{" + ",".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in pairs) + "}"
    keys = [key for key, _ in pairs]
    found = json_text.duplicate_key(text.encode())
    if len(set(keys)) == len(keys):
        assert found is None
    else:
        assert keys.count(found) > 1


def test_keys_spelled_with_escapes_are_the_same_keys():
    assert json_text.duplicate_key(b'{"type":1,"t\\u0079pe":2}') == "type"


@given(st.binary(max_size=100) | st.text('{}[]":,\\u0a1e9.-', max_size=40).map(str.encode))
def test_no_bytes_make_it_raise(data):
    found = flaw(data)
    assert found in (None, "invalid_json", "too_deep", "number_out_of_range", "bad_text")
    if found is None:
        json.loads(data)


@given(st.lists(st.sampled_from(["\ud83d", "\ude00", "a", "\\", "u", "d800", "\U0001f600"]), max_size=6))
def test_half_of_a_surrogate_pair_is_found_where_encoding_fails(parts):
    text = "".join(parts)
    halves = text.encode("utf-16-le", "surrogatepass")
    try:
        halves.decode("utf-16-le")
    except UnicodeDecodeError:
        lone = True
    else:
        lone = False
    assert json_text.has_lone_surrogate(json.dumps(text).encode()) is lone


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    numbers: list[float] = []


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    inner: Inner | None = None


@pytest.mark.parametrize(
    ("data", "code", "path"),
    [
        (b"{}", "missing_field", "name"),
        (b'{"name":1}', "wrong_type", "name"),
        (b'{"name":"a","x":1}', "unknown_field", "x"),
        (b'{"name":"a","inner":{"x":1}}', "unknown_field", "inner.x"),
        (b'{"name":"a","inner":{"numbers":[1,"2"]}}', "wrong_type", "inner.numbers.1"),
        (b'{"name":"a","inner":{"numbers":[1e999]}}', "number_out_of_range", "inner.numbers.0"),
        (b'{"name":"a"', "invalid_json", ""),
        (b'{"name":"\xff"}', "invalid_json", ""),
        (b"[]", "wrong_type", ""),
        (b'{"' + b"x" * 10_000 + b'":1,"name":"a"}', "unknown_field", "x" * 200),
    ],
)
def test_a_decoders_complaint_becomes_a_code_and_a_path(data, code, path):
    with pytest.raises(json_text.DECODE_ERRORS) as caught:
        msgspec.json.decode(data, type=Outer)
    fault = json_text.fault(caught.value)
    assert (fault.code, fault.path) == (code, path)
    assert fault.detail.isascii()
    assert len(fault.detail) < 300


def test_a_strangers_text_in_a_sentence_is_short_ascii():
    assert json_text.quoted("ab") == "'ab'"
    assert len(json_text.quoted("\ud800" * 1000)) < 500
    assert all(
        json_text.quoted(chr(number)).isascii() for number in itertools.chain(range(300), (0x202E, 0xD800))
    )


def test_a_text_that_never_ends_is_judged_in_linear_time():
    """Escaped quotes behind an open one: a search that failed at the end would begin again at each of them."""
    raw = b"[" * 65 + b'"' + b'\\"' * 200_000
    begun = time.process_time()
    assert json_text.flaw(raw, depth=64, digits=308) in ("too_deep", "invalid_json")
    assert time.process_time() - begun < 2  # about 0.05; minutes before


@pytest.mark.parametrize("extra", [0, 1])
def test_a_number_is_too_long_wherever_it_stands(extra):
    number = b"7" * (DIGITS + extra)
    for before in range(0, 2 * DIGITS, 7):
        data = b'["%b",%b,"%b"]' % (b"x" * before, number, b"y" * (before % 50))
        assert json_text.has_long_number(data, DIGITS) is bool(extra)
        assert flaw(data.replace(number, b"-0.%b" % number)) == ("number_out_of_range" if extra else None)


@pytest.mark.parametrize(
    ("squares", "curlies"), [(0, 70), (70, 0), (33, 33), (32, 32), (64, 0), (0, 64), (40, 40)]
)
def test_brackets_of_both_kinds_count_together(squares, curlies):
    data = b"[" * squares + b'{"a":' * curlies + b"1" + b"}" * curlies + b"]" * squares
    assert flaw(data) == ("too_deep" if squares + curlies > DEPTH else None)
