"""Every kind of answer of the table, on real sockets and in every segmentation."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from surehook.core.http1.answer import DONE, STRANGERS, AnswerReader
from tests.wire.answers import CASES
from tests.wire.posting import client, post, until
from tests.wire.receivers import Hang, Hear, Receiver, Reset, Say, Wait

HEAD_BYTES, BODY_READ_BYTES, BODY_PIECES = (
    STRANGERS.head_bytes,
    STRANGERS.body_read_bytes,
    STRANGERS.body_pieces,
)
ENDS = {"hang": (Hang(),), "close": (Wait(0),), "reset": (Wait(0.02), Reset())}
RUNS = {"asyncio": asyncio.run, "uvloop": uvloop.run}


@pytest.mark.parametrize("loop", ["uvloop", pytest.param("asyncio", marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_an_answer_becomes_what_the_table_says(case, loop):
    async def play():
        script = (Hear(), Say(case.data), *ENDS[case.end]) if case.data else (Hear(), *ENDS[case.end])
        async with Receiver(script).running() as receiver:
            wire = client(body_wait_s=0.05)
            answer = await post(wire, receiver.url, timeout_s=0.15 if case.failure == "timeout" else 2.0)
            assert (answer.status, answer.failure) == (case.status, case.failure)
            assert answer.unknown == (case.status is None), "the request was sent whole"
            if case.body is not None:
                assert answer.body == case.body
            assert answer.truncated == case.truncated
            if case.end == "hang":
                assert any(connection.is_fit for connection in wire.shared.pool.open) == case.reused
            else:
                await until(lambda: not wire.shared.pool.open)
            await wire.close()
            assert not wire.shared.pool.open

    RUNS[loop](play())


def read(*parts: bytes, end: bool = True) -> tuple[object, ...]:
    reader = AnswerReader()
    for part in parts:
        if reader.feed(part) == DONE:
            break
        assert reader.held_bytes <= 96 * 1024
    if reader.phase != DONE and end:
        reader.end()
    return reader.status, reader.failure, reader.body, reader.truncated


PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\n\r\n"
AFTER_PLAIN = {
    "the same": (PLAIN + b"no",),
    "in two pieces": (PLAIN, b"no"),
    "cut short": (PLAIN + b"n",),
    "one byte more": (PLAIN + b"non",),
    "another status, as long": (PLAIN.replace(b"200 OK", b"500 OK") + b"no",),
    "odd since its interim": (b"HTTP/1.1 103 Early\r\nConnection: x\r\n\r\n", PLAIN + b"no"),
}


@pytest.mark.parametrize("parts", AFTER_PLAIN.values(), ids=AFTER_PLAIN)
def test_an_answer_is_read_alike_whatever_came_before_on_its_connection(parts):
    def state(reader: AnswerReader) -> tuple[object, ...]:
        for part in parts:
            reader.feed(part)
        return (
            reader.phase, reader.status, reader.failure, reader.head, reader.body, reader.truncated, reader.reusable,
            reader.keep_s,
        )  # fmt: skip

    used = AnswerReader()
    for _ in range(2):
        assert used.feed(PLAIN + b"ok") == DONE
        assert used.reusable
        used.reset()
    assert state(used) == state(AnswerReader())


@pytest.mark.parametrize(
    "case", [case for case in CASES if len(case.data) < 70_000], ids=lambda case: case.id
)
def test_how_an_answer_is_cut_into_segments_changes_nothing(case):
    whole = read(case.data)
    steps = (1, 2, 3, 7, 1000) if len(case.data) < 3_000 else (997, 4096)
    for step in steps:
        pieces = [case.data[at : at + step] for at in range(0, len(case.data), step)]
        assert read(*pieces) == whole


@pytest.mark.parametrize("more", [b"", b"x", b"HTTP/1.1 200 OK\r\n\r\n"])
@pytest.mark.parametrize(
    "framing", [b"content-length: 2\r\n\r\no|k", b"transfer-encoding: chunked\r\n\r\n2\r\no|k\r\n0\r\n\r\n"]
)
def test_bytes_behind_a_body_in_pieces_forbid_another_request(framing, more):
    first, second = framing.split(b"|")
    reader = AnswerReader()
    reader.feed(b"HTTP/1.1 200 OK\r\n" + first)
    assert reader.feed(second + more) == DONE
    assert (reader.status, reader.body, reader.reusable) == (200, b"ok", not more)


def test_bytes_behind_chunks_that_end_at_the_cap_forbid_another_request():
    chunk = b"%x\r\n" % (BODY_READ_BYTES - 13) + b"x" * (BODY_READ_BYTES - 13) + b"\r\n0\r\n\r\n"
    assert len(chunk) == BODY_READ_BYTES
    for more in (b"", b"HTTP/1.1 200 OK\r\n\r\n"):
        reader = AnswerReader()
        reader.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        assert reader.feed(chunk + more) == DONE
        assert (reader.status, reader.reusable) == (200, not more)


@pytest.mark.parametrize("size", range(HEAD_BYTES - 4, HEAD_BYTES + 5))
def test_a_head_at_its_cap_is_judged_alike_whole_and_in_pieces(size):
    start = b"HTTP/1.1 204 No\r\n" + b"x: " + b"y" * 7_000 + b"\r\nx: " + b"y" * 7_000 + b"\r\nz: "
    head = start + b"y" * (size - len(start)) + b"\r\n\r\n"
    whole = read(head)
    assert whole[:2] == ((204, None) if size + 2 <= HEAD_BYTES else (None, "headers_too_large"))
    for cut in range(size - 6, len(head)):
        assert read(head[:cut], head[cut:]) == whole
        assert read(head[:cut], *(head[at : at + 1] for at in range(cut, len(head)))) == whole


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


def test_a_body_of_as_many_chunks_as_may_be_is_whole():
    reader = AnswerReader()
    assert reader.feed(CHUNKED + b"1\r\nx\r\n" * BODY_PIECES + b"0\r\n\r\n") == DONE
    assert (reader.body, reader.truncated, reader.reusable) == (b"x" * BODY_PIECES, False, True)


def test_a_body_of_more_chunks_is_cut_and_its_status_stays():
    reader = AnswerReader()
    assert reader.feed(CHUNKED + b"1\r\nx\r\n" * (BODY_PIECES + 1) + b"0\r\n\r\n") == DONE
    assert (reader.status, reader.failure) == (200, None)
    assert (reader.body, reader.truncated, reader.reusable) == (b"x" * BODY_PIECES, True, False)


def test_a_body_of_more_trailers_is_cut():
    reader = AnswerReader()
    assert reader.feed(CHUNKED + b"2\r\nok\r\n0\r\n" + b"a:\r\n" * BODY_PIECES) == DONE
    assert (reader.status, reader.body, reader.truncated, reader.reusable) == (200, b"ok", True, False)


@pytest.mark.parametrize(
    "framing", [b"content-length: 9999\r\n\r\n", b"\r\n", b"transfer-encoding: chunked\r\n\r\n2000\r\n"]
)
def test_a_body_in_more_reads_is_cut(framing):
    reader = AnswerReader()
    assert reader.feed(HEAD + framing) != DONE
    reads = 1
    while reader.feed(b"x") != DONE:
        reads += 1
    assert reads < BODY_PIECES
    assert (reader.status, reader.body, reader.truncated, reader.reusable) == (200, b"x" * reads, True, False)
