"""What beside a body cannot be read is left out, and said; the library alone would give the connection up."""

from __future__ import annotations

import pytest
from pamqp import decode, frame
from pamqp.commands import Basic
from pamqp.exceptions import UnmarshalingException
from pamqp.header import ContentHeader

from surehook.ingest import frames


class Raw(Basic.Properties):
    """Properties of these bytes: flags, and what they announce."""

    def __init__(self, raw: bytes) -> None:
        super().__init__()
        self.raw = raw

    def marshal(self) -> bytes:
        return self.raw


TIMESTAMP, HEADERS, MESSAGE_ID = 1 << 6, 1 << 13, 1 << 7


def flags(which: int) -> bytes:
    return which.to_bytes(2, "big")


UNREADABLE = {
    "an instant of the year 31,690,708": flags(TIMESTAMP) + (10**18).to_bytes(8, "big"),
    "a table that is longer than itself": flags(HEADERS) + (99).to_bytes(4, "big"),
    "a name in Latin-1": flags(HEADERS) + b"\x00\x00\x00\x03\x01\xe9V",
    "a kind that there is not": flags(HEADERS) + b"\x00\x00\x00\x03\x01a?",
}
LATIN_1 = flags(MESSAGE_ID) + b"\x04caf\xe9"


@pytest.fixture
def widened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(decode.METHODS, "shortstr", decode.METHODS["shortstr"])  # to be put back
    monkeypatch.setattr(ContentHeader, "unmarshal", ContentHeader.unmarshal)
    frames.widen()
    frames.widen()


def read(raw: bytes) -> ContentHeader:
    _, _, found = frame.unmarshal(frame.marshal(ContentHeader(body_size=7, properties=Raw(raw)), 1))
    assert isinstance(found, ContentHeader)
    return found


@pytest.mark.parametrize("raw", [*UNREADABLE.values(), LATIN_1], ids=[*UNREADABLE, "an id in Latin-1"])
def test_the_library_alone_gives_up(raw: bytes) -> None:
    with pytest.raises((UnmarshalingException, ValueError, OverflowError)):
        read(raw)


@pytest.mark.usefixtures("widened")
@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE)
def test_properties_that_cannot_be_read_are_left_out_and_said(raw: bytes) -> None:
    found = read(raw)
    assert found.body_size == 7
    assert found.properties.timestamp is None
    assert found.properties.headers is not None
    assert list(found.properties.headers) == [frames.UNREAD]


@pytest.mark.usefixtures("widened")
def test_an_id_of_other_bytes_stays_an_id() -> None:
    assert read(LATIN_1).properties.message_id == "caf\\xe9"


@pytest.mark.usefixtures("widened")
def test_what_can_be_read_is_read_as_before() -> None:
    given = Basic.Properties(message_id="m-é", headers={"a": 1}, content_type="application/json")
    _, _, found = frame.unmarshal(frame.marshal(ContentHeader(body_size=7, properties=given), 1))
    assert isinstance(found, ContentHeader)
    assert found.properties == given


@pytest.mark.usefixtures("widened")
def test_a_header_without_even_a_size_is_still_refused() -> None:
    whole = bytearray(frame.marshal(ContentHeader(body_size=7), 1))
    short = bytes(whole[:3]) + (4).to_bytes(4, "big") + bytes(whole[7:11]) + b"\xce"
    with pytest.raises(Exception, match="unpack"):
        frame.unmarshal(short)
