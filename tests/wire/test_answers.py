"""Every kind of answer of the table, on real sockets and in every segmentation."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from surehook.wire.response import DONE, Reader
from tests.wire.answers import CASES
from tests.wire.posting import client, post, until
from tests.wire.receivers import Hang, Hear, Receiver, Reset, Say, Wait

ENDS = {"hang": (Hang(),), "close": (Wait(0),), "reset": (Wait(0.02), Reset())}
RUNS = {"asyncio": asyncio.run, "uvloop": uvloop.run}


@pytest.mark.parametrize("loop", RUNS)
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
                assert any(connection.is_fit for connection in wire.pool.open) == case.reused
            else:
                await until(lambda: not wire.pool.open)
            await wire.close()
            assert not wire.pool.open

    RUNS[loop](play())


def read(*parts: bytes, end: bool = True) -> tuple[object, ...]:
    reader = Reader()
    for part in parts:
        if reader.feed(part) == DONE:
            break
        assert reader.held_bytes <= 96 * 1024
    if reader.phase != DONE and end:
        reader.end()
    return reader.status, reader.failure, reader.body, reader.truncated


@pytest.mark.parametrize(
    "case", [case for case in CASES if len(case.data) < 70_000], ids=lambda case: case.id
)
def test_how_an_answer_is_cut_into_segments_changes_nothing(case):
    whole = read(case.data)
    steps = (1, 2, 3, 7, 1000) if len(case.data) < 3_000 else (997, 4096)
    for step in steps:
        pieces = [case.data[at : at + step] for at in range(0, len(case.data), step)]
        found = read(*pieces)
        if whole[1] is None or step > 1:
            assert found[:3] == whole[:3] or (found[0] is None and whole[0] is None)
        else:
            assert found[0] is None and found[1] is not None


@pytest.mark.parametrize("more", [b"", b"x", b"HTTP/1.1 200 OK\r\n\r\n"])
@pytest.mark.parametrize(
    "framing", [b"content-length: 2\r\n\r\no|k", b"transfer-encoding: chunked\r\n\r\n2\r\no|k\r\n0\r\n\r\n"]
)
def test_bytes_behind_a_body_in_pieces_forbid_another_request(framing, more):
    first, second = framing.split(b"|")
    reader = Reader()
    reader.feed(b"HTTP/1.1 200 OK\r\n" + first)
    assert reader.feed(second + more) == DONE
    assert (reader.status, reader.body, reader.reusable) == (200, b"ok", not more)
