"""Ids as text."""

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


@given(event=RAW, chance=st.binary(min_size=6, max_size=6))
def test_a_delivery_written_after_its_event_is_what_it_is_alone(event: bytes, chance: bytes) -> None:
    delivery = ids.delivery_id(event, chance)
    written = ids.delivery_text(ids.text(ids.EVENT, event).encode(), delivery)
    assert written.decode() == ids.text(ids.DELIVERY, delivery)
