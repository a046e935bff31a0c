"""A text cut into pieces is what the whole is to a decoder: sound, or wrong in the same way."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as some

from surehook.core import json_pieces, json_text
from surehook.core.errors import Problem
from surehook.core.json_items import Text
from surehook.core.published import EventIn, decode_event, decode_event_in_steps, decode_item
from surehook.core.steps import SLICE_COST, Steps, at_once
from tests.budget import examples
from tests.core.mending import mend_halves

DEEP = b"[" + b",".join([b"[" * 62 + b"]" * 62] * 2_000) + b"]"
_plain = msgspec.json.Decoder().decode
_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def found_by_one(data: bytes) -> str | None:
    """What the decoder has against a text, without any care of ours."""
    try:
        _plain(data)
    except json_text.DECODE_ERRORS as error:
        return json_text.fault(error).code
    return None


VALUES = some.recursive(
    some.none() | some.integers(-(10**30), 10**30) | some.floats(allow_nan=False) | some.text('{}[]":,\\aé\ud800'),
    lambda inner: some.lists(inner, max_size=6) | some.dictionaries(some.text('{}[]":,\\b', max_size=3), inner, max_size=6),
    max_leaves=40,
)  # fmt: skip
TOKENS = some.sampled_from(
    [b"[", b"]", b"{", b"}", b",", b",", b":", b'"a":', b'"', b"\\", b'"b,{"', b'"\\""', b"1", b"1e999", b"1e308", b"-0.5", b"tru",
     b"null", b" ", b'"\\ud800"', b'"\xff"', b"01", b"9" * 400],
)  # fmt: skip
TEXTS = some.builds(lambda value: json.dumps(value).encode(), VALUES)


@given(
    TEXTS | some.lists(TOKENS, max_size=30).map(b"".join) | some.tuples(TEXTS, TOKENS, TEXTS).map(b",".join),
    some.integers(1, 40),
)
@example(b"[,1e999", 1)
@example(b"{,1e999", 1)
@example(b"[[1,[ ,2]],1e999", 1)
@settings(max_examples=examples(2_000))
def test_the_first_piece_with_a_fault_has_the_fault_of_the_whole(data: bytes, size: int) -> None:
    faults = (found_by_one(piece) for piece, _ in json_pieces.cut(data, size))
    assert next((fault for fault in faults if fault is not None), None) == found_by_one(data)


@given(TEXTS, some.integers(1, 40))
def test_pieces_hold_every_text_and_number_of_the_whole_once(data: bytes, size: int) -> None:
    """A nought that stands in a comma's place, and the key in front of it, are left out, and such of the text with them."""

    def kept(text: bytes) -> list[object]:
        leaves = list[object]()

        def walk(value: object) -> None:
            if isinstance(value, list | tuple):
                for each in value:
                    walk(each)
            elif value not in ("", 0):
                leaves.append(value)

        walk(json.loads(text, object_pairs_hook=tuple))
        return leaves

    if found_by_one(data) is None:
        pieces = [leaf for piece, _ in json_pieces.cut(data, size) for leaf in kept(piece)]
        assert pieces == kept(data)


@given(
    some.floats(allow_nan=False) | some.sampled_from(["1e999", "-1e309", "1.7976931348623159e308", "1e-400"])
)
def test_numbers_are_refused_as_the_decoder_refuses_them(number: float | str) -> None:
    data = f"[{number}]".encode() if isinstance(number, str) else json.dumps([number]).encode()
    assert json_text.flaw(data, depth=64, digits=308) == found_by_one(data)


def event(data: bytes, before: bytes = b"") -> bytes:
    return b'{%b"tenant":"acme","type":"a.b","data":%b}' % (before, data)


def costs_of(steps: Steps[EventIn]) -> tuple[EventIn, list[int]]:
    costs = list[int]()
    try:
        while True:
            costs.append(next(steps))
    except StopIteration as end:
        return end.value, costs


@pytest.mark.parametrize(
    "data", [DEEP, b"[" + b",".join([b"{}"] * 80_000) + b"]", b"[" + b"1e308," * 40_000 + b"1]"]
)
def test_a_large_event_of_many_values_is_read_in_small_steps(data: bytes) -> None:
    found, costs = costs_of(decode_event_in_steps(event(data)))
    assert found == decode_event(event(data)) == EventIn("acme", "a.b", data)
    assert len(costs) >= len(data) // json_pieces.PIECE
    assert max(costs) <= 2 * SLICE_COST


def test_a_large_event_of_text_is_read_in_one_slice() -> None:
    _, costs = costs_of(decode_event_in_steps(event(b'"%b"' % (b"a, b" * 50_000))))
    assert len(costs) <= 3


def test_a_small_event_is_one_step() -> None:
    assert costs_of(decode_event_in_steps(event(b"[[1]]")))[1] == []


def test_numbers_that_are_almost_too_large_are_read_as_fast_as_others() -> None:
    data = event(b"[" + b"1e308," * 40_000 + b"1]")
    begun = time.process_time()
    assert decode_item(data) == EventIn("acme", "a.b", data[len(event(b"")) - 1 : -1])
    assert time.process_time() - begun < 0.07  # 0.01; 0.35 as the decoder reads them


def test_a_key_given_twice_is_found_around_large_data() -> None:
    assert decode_event(event(DEEP, b'"subject":null,')).data == DEEP
    for before in (
        b'"subject":null,"type":"x",',
        b'"data":1,',
        b'"data":%b,' % (b"[" + b"[]," * 6_000 + b"1]"),
    ):
        with pytest.raises(Problem) as refused:
            decode_event(event(b"[" + b"[]," * 6_000 + b"1]", before))
        assert refused.value.code == "duplicate_key"


def by_two_mended_copies(text: bytes) -> tuple[bool, str | None]:
    """The field of a half as it is meant."""
    if not json_text.has_lone_surrogate(text):
        return False, None
    try:
        one = _fields(mend_halves(text))
        two = _fields(mend_halves(text, rb"\ufffc"))
    except json_text.DECODE_ERRORS:
        return True, None
    return True, next((key for key in one if key in two and bytes(one[key]) != bytes(two[key])), None)


ESCAPES = some.lists(
    some.sampled_from(
        [rb"\ud83d", rb"\ude00", rb"\\", rb"\ufffd", rb"\ufffc", rb"\"", b"u", b"d800", b"a", b"\\"]
    )
).map(b"".join)


@given(some.lists(some.tuples(some.sampled_from([b"a", b"b", b"c"]) | ESCAPES, ESCAPES), max_size=5))
@settings(max_examples=examples(1_000))
def test_the_field_of_a_half_is_the_one_that_two_ways_of_mending_tell_apart(
    pairs: list[tuple[bytes, bytes]],
) -> None:
    text = b"{" + b",".join(b'"%b":["%b"]' % pair for pair in pairs) + b"}"
    assert at_once(json_text.field_of_half(text)) == by_two_mended_copies(text)


def test_an_event_full_of_halves_is_refused_in_small_steps() -> None:
    steps, costs = decode_event_in_steps(event(b'"' + rb"\ud800" * 43_000 + b'"')), list[int]()
    with pytest.raises(Problem) as refused:
        costs.extend(steps)
    assert (refused.value.code, refused.value.field) == ("bad_text", "data")
    assert max(costs) <= SLICE_COST < sum(costs)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_halves_are_mended_in_memory_of_any_kind(kind: type[Text]) -> None:
    assert at_once(json_text.mend_in_steps(kind(rb'"\ud800"'))) == rb'"\ufffd"'
