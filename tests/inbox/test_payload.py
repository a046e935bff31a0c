"""Bodies of strangers: what is read, what is refused, and that both are decided quickly."""

import json
import random
import time

import pytest

from surehook.core.sources import payload
from surehook.core.sources.provider import Bounds
from surehook.core.verification import VerifyError

SMALL = Bounds(keys=3, values=6, depth=3, digits=5)
PIECES = ["a", "b", '"', "\\", ":", "{", "}", ",", "é", " ", '\\"', "x:y", '":', "[", "\n", "\U0001f44d"]


def code(raw, bounds=None):
    try:
        payload.read_json(raw, bounds or Bounds())
    except VerifyError as refusal:
        return refusal.code
    return None


class Repeated(Exception):
    pass


def once(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        raise Repeated
    return dict(pairs)


def text(chance):
    spelled = json.dumps(
        "".join(chance.choices(PIECES, k=chance.randrange(3))), ensure_ascii=chance.random() < 0.5
    )
    return chance.choice((spelled, spelled, '"a"', '"\\u0061"'))


def value(chance, depth):
    kind = chance.random()
    if depth == 0 or kind < 0.4:
        return chance.choice(("1", "null", "[]", "{}", "1e3", "12345678901234567890123", text(chance)))
    if kind < 0.7:
        return "[" + ", ".join(value(chance, depth - 1) for _ in range(chance.randrange(3))) + "]"
    members = (f"{text(chance)} : {value(chance, depth - 1)}" for _ in range(chance.randrange(4)))
    return "{" + " , ".join(members) + "}"


def test_keys_given_twice_are_found_wherever_a_plain_reader_finds_them():
    chance, repeats = random.Random(1), 0
    for _ in range(4_000):
        written = value(chance, 4)
        try:
            json.loads(written, object_pairs_hook=once)
            wanted = None
        except Repeated:
            wanted, repeats = "unsafe_json", repeats + 1
        assert code(written.encode()) == wanted, written
    assert repeats > 100


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        (b'{"a":1,"b":2,"c":3}', None), (b'{"a":1,"b":2,"c":3,"d":4}', "unsafe_json"),
        (b"[1,2,3,4,5,6,7]", None), (b"[1,2,3,4,5,6,7,8]", "unsafe_json"),
        (b"[[[1]]]", None), (b"[[[[1]]]]", "unsafe_json"), (b"[[[]],[[]]]", None),
        (b"12345", None), (b"123456", "unsafe_json"), (b'"123456"', None), (b'{"123456":"[[[[::::,,,,"}', None),
        (b'"a\\"[[[[::::,,,,"', None), (b'"\\\\"', None), (b'"', "malformed"), (b'"\\"', "malformed"), (b"\\", "malformed"),
        (b"[1]x", "malformed"), (b"'a'", "malformed"), (b"[1,]", "malformed"), (b"\xef\xbb\xbf1", "malformed"),
        (b'"\t"', "malformed"), (b"nul", "malformed"), (b"\x00", "malformed"), (b"\t\r\n ", "no_body"), (b"", "no_body"),
    ],
)  # fmt: skip
def test_each_bound_is_counted_outside_of_texts(raw, wanted):
    assert code(raw, SMALL) == wanted


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * 100_000 + b"]" * 100_000, b"[" + b"0," * 499_999 + b"0]", b"9" * 1_000_000, b'"' * 1_000_000, b"[{" * 500_000,
        b'"' * 500_000 + b'\\"' * 250_000, b'"' + b"\\" * 999_998 + b'"', b'"' + b"a" * 1_000_000, b'{"a":' * 200_000,
        b'"' + b'\\"' * 500_000, b"-" * 1_000_000, b" " * 1_000_000, b"1e" + b"9" * 1_000_000,
    ],
)  # fmt: skip
def test_a_mebibyte_of_anything_is_judged_quickly(raw):
    begun = time.process_time()
    code(raw)
    assert time.process_time() - begun < 0.5  # about 0.05; what is guarded against takes many seconds


def test_a_number_of_more_than_64_bits_is_a_number():
    assert payload.read_json(b'{"n":123456789012345678901234567890}', Bounds())["n"] > 2**64


@pytest.mark.parametrize("raw", [b"a=%ff", b"a=1&" * 1_001, b"\xff=1"])
def test_a_form_that_readers_would_disagree_about_is_refused(raw):
    with pytest.raises(VerifyError) as caught:
        payload.read_form(raw)
    assert caught.value.code == "malformed"


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.b", 1), ("a", {"b": 1, "l": [5, {"c": 2}]}), ("a.l.1.c", 2), ("a.l.0", 5), ("a.l.9", None), ("a.l.x", None), ("x", None),
     ("a.b.c", None), ("", None), ("a.l.-1", None), ("a.l.²", None)],
)  # fmt: skip
def test_a_path_leads_to_a_value_or_to_none(path, found):
    assert payload.at({"a": {"b": 1, "l": [5, {"c": 2}]}}, path) == found


@pytest.mark.parametrize(
    ("raw", "refused", "read"),
    [
        (b'{"a":[1,{"b":2}]}', None, {"a": [1, {"b": 2}]}),
        (b'{"a":1,"a":2}', "unsafe_json", {"a": 2}),
        (b'{"a":1,"b":2,"c":3,"d":4}', "unsafe_json", {"a": 1, "b": 2, "c": 3, "d": 4}),
        (b"123456", "unsafe_json", 123456),
    ],
)
def test_a_body_that_was_read_before_is_read_again_without_a_look_at_its_bounds(raw, refused, read):
    assert code(raw, SMALL) == refused
    assert payload.read_json(raw, None) == read


@pytest.mark.parametrize(
    ("raw", "refused"),
    [(b" ", "no_body"), (b"\xef\xbb\xbf{}", "malformed"), (b"{", "malformed"), (b"[" * 9_999, "unsafe_json")],
)
def test_what_cannot_be_read_is_refused_then_as_well(raw, refused):
    with pytest.raises(VerifyError) as caught:
        payload.read_json(raw, None)
    assert caught.value.code == refused
