"""Ids as text and as bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from surehook.core import ids

RAW = st.binary(min_size=16, max_size=16)


@given(raw=RAW)
def test_what_is_written_is_read_back(raw: bytes) -> None:
    assert ids.parse(ids.EVENT, ids.text(ids.EVENT, raw)) == raw


@given(first=RAW, second=RAW)
def test_text_sorts_as_the_bytes_do(first: bytes, second: bytes) -> None:
    assert (ids.text(ids.EVENT, first) < ids.text(ids.EVENT, second)) == (first < second)


@given(event=RAW, random=st.binary(min_size=6, max_size=6))
def test_a_delivery_written_after_its_event_is_what_it_is_alone(event: bytes, random: bytes) -> None:
    delivery = ids.delivery_id(event, random)
    written = ids.delivery_text(ids.text(ids.EVENT, event).encode(), delivery)
    assert written.decode() == ids.text(ids.DELIVERY, delivery)


@given(RAW)
def test_the_text_is_the_number_in_base_32(raw: bytes) -> None:
    number, digits = int.from_bytes(raw), ""
    for _ in range(ids.TEXT_CHARS):
        number, digit = divmod(number, 32)
        digits = ids.ALPHABET[digit] + digits
    assert ids.text(ids.EVENT, raw) == "evt_" + digits


@given(st.integers(0, (1 << 48) - 1), st.integers(0, 4095), st.binary(min_size=8, max_size=8))
def test_an_id_tells_its_instant_its_number_and_its_kind(now: int, count: int, random: bytes) -> None:
    raw = ids.counted_uuid7(now, count, random)
    assert (len(raw), ids.millis(raw), ids.is_uuid7(raw)) == (16, now, True)
    assert int.from_bytes(raw[6:8]) & 0xFFF == count
    assert raw[8] & 0x3F == random[0] & 0x3F
    assert raw[9:] == random[1:]


@given(st.integers(0, (1 << 48) - 1), st.binary(min_size=10, max_size=10))
def test_an_id_of_chance_alone_is_one_too(now: int, random: bytes) -> None:
    raw = ids.uuid7(now, random)
    assert (len(raw), ids.millis(raw), ids.is_uuid7(raw)) == (16, now, True)
