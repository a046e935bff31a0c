"""The items of an array in steps are what a decoder of the whole finds, its words about faults included."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from surehook.core import json_items, json_text, limits
from surehook.core.errors import Problem
from surehook.core.published import spans_of_batch, split_batch
from tests.budget import examples
from tests.core.mending import mend_halves

MIB = 1 << 20
STEP = 600_000  # bytes: the widest look for an item that is too large, and its rest
_whole = msgspec.json.Decoder(list[msgspec.Raw]).decode


def in_steps(text: bytes, most: int = 1_000) -> tuple[Any, list[int]]:
    """The items, or what was raised; and what each step has cost."""
    steps, costs = json_items.spans(text, most=most), list[int]()
    try:
        while True:
            costs.append(next(steps))
    except StopIteration as found:
        return [text[begin:end] for begin, end in found.value], costs
    except json_text.DECODE_ERRORS as error:
        return f"{type(error).__name__}: {error}", costs


def at_once(text: bytes) -> Any:
    """The same by a decoder of the whole."""
    try:
        return [bytes(each) for each in _whole(text)]
    except json_text.DECODE_ERRORS as error:
        if not json_text.has_lone_surrogate(text):
            return f"{type(error).__name__}: {error}"
    mended, at, items = mend_halves(text), 0, list[bytes]()
    try:
        for each in _whole(mended):
            at = mended.index(bytes(each), at)
            items.append(text[at : at + len(bytes(each))])
            at += len(items[-1])
    except json_text.DECODE_ERRORS as error:
        return f"{type(error).__name__}: {error}"
    return items


GOOD = [
    b'{"a":1}', b"1", b"-0.5e3", b'"x"', b'"\\ud83d"', b'"\\ud83d\\ude00"', b'"\\\\ud83d"', b"[1,[2]]", b"null", b"true",
    b'"\\""', b'{"a":"},{"}', b'"\xc3\xa9"', b'"\xff"',
]  # fmt: skip
BAD = [
    *GOOD, b"tru", b"01", b"1.", b'{"a":}', b'"', b"\\", b"\\u", b"\\udc00", b"[", b"]", b"{", b"}", b",", b":", b"", b"x",
]  # fmt: skip
BLANKS = some.sampled_from([b"", b"", b" ", b"\t\r\n "])


@given(
    some.lists(
        some.tuples(BLANKS, some.sampled_from(GOOD), BLANKS)
        | some.tuples(BLANKS, some.sampled_from(BAD), BLANKS)
    ),
    some.sampled_from([b"["] * 9 + [b"", b"{", b'"', b" ["]),
    some.sampled_from([b"]"] * 9 + [b"", b"}", b"]]", b",]", b"] x", b"] "]),
)
@settings(max_examples=examples(2_000))
def test_items_and_faults_are_those_of_the_whole(
    items: list[tuple[bytes, ...]], begin: bytes, end: bytes
) -> None:
    text = begin + b",".join(map(b"".join, items)) + end
    found = at_once(text)
    assert in_steps(text)[0] == found
    short = json_items.at_once(text, most=1_000)
    assert short == found if short is not None else b"\\u" in text or isinstance(found, str)


def test_only_a_short_array_of_few_items_is_read_at_once() -> None:
    item, most = b'"%b"' % (b"x" * 1_000), 100
    few, many = b"[" + b",".join([item] * most) + b"]", b"[" + b",".join([item] * (most + 1)) + b"]"
    assert json_items.at_once(few, most=most) == [item] * most
    assert json_items.at_once(many, most=most) is None
    assert json_items.at_once(b"[" + b" " * json_items.AT_ONCE + b"1]", most=most) is None


@pytest.mark.parametrize("edge", range(-8, 9))
@pytest.mark.parametrize("end", [b"]", b"1]", b'-0.5e3,"x"]', b"tru]", b"-]"])
def test_an_item_that_is_longer_than_what_is_read_at_first_is_read_whole(edge: int, end: bytes) -> None:
    long = b"[" + b" " * (json_items.WINDOW - 2 + edge)
    text = b'["a",' + long + end + b',{"b":1}]'
    assert in_steps(text)[0] == at_once(text)


def test_of_a_long_array_one_item_too_many_is_read() -> None:
    text = b"[" + b"1," * 100_000 + b"x"
    found, costs = in_steps(text, most=10)
    assert found == [b"1"] * 11
    assert sum(costs) < 100


def filled(item: bytes, end: bytes) -> bytes:
    count = min(999, (8 * MIB - 1_000) // (len(item) + 1))
    return b"[" + b",".join([item] * count) + end


@pytest.mark.parametrize(
    ("item", "end", "code"),
    [
        (b'"' + b"x" * 8_000 + b'"', b"", "invalid_json"),
        (b'"' + b"x" * 8_000 + b'"', b',{"a":}]', "invalid_json"),
        (b'"' + b"\\\\" * 4_000 + b'"', b"", "invalid_json"),
        (b'"' + b"\\ud83d\\ude00" * 600 + b'"', b"", "invalid_json"),
        (b'"' + b"\\ud83d\\ude00" * 600 + b'"', b',"\\ud83d"', "bad_text"),
        (b'"' + b"\\ud83d" * 600 + b'"', b"", "bad_text"),
        (b"1", b"", "invalid_json"),
        (b"1", b"," + b"1," * 4_000_000 + b"1]", "too_many_events"),
    ],
)
def test_a_large_broken_batch_is_refused_in_small_steps(item: bytes, end: bytes, code: str) -> None:
    steps, costs = spans_of_batch(filled(item, end)), list[int]()
    with pytest.raises(Problem) as refused:
        costs.extend(steps)
    assert refused.value.code == code
    assert max(costs) <= STEP


def test_a_batch_in_steps_is_the_batch() -> None:
    items = [b'{"n":%d}' % number for number in range(limits.BATCH_EVENTS)]
    assert split_batch(b" [" + b" , ".join(items) + b"] ") == items
