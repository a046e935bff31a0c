"""What a caller who keeps to HTTP/1.1 meets."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections import Counter

import pytest

from tests.http_server.house import GET, HEAD, House, house, on_both_loops, settle


@on_both_loops
async def test_one_connection_carries_many_requests() -> None:
    async with house() as place:
        caller = await place.call()
        for size in (0, 1, 600, 20_000, 300_000):
            await caller.send(HEAD + b"content-length: %d\r\n\r\n" % size + b"x" * size)
            status, headers, body = await caller.answer()
            assert (status, body) == (200, b"%d bytes" % size)
            assert "connection" not in headers and headers["date"].endswith("GMT")
        assert place.connections.open == len(place.connections.idle) == 1
        assert place.connections.budget.used == 0


@on_both_loops
async def test_a_request_in_single_bytes_is_the_same_request() -> None:
    async with house() as place:
        caller = await place.call()
        request = (
            HEAD + b"x-a: b\r\ntransfer-encoding: chunked\r\n\r\n3;e=f\r\nabc\r\n2\r\nde\r\n0\r\nt: u\r\n\r\n"
        )
        for byte in request:
            caller.writer.write(bytes([byte]))
            await caller.send()
        assert (await caller.answer())[2] == b"5 bytes"
        assert place.app.bodies == [b"abcde"]
        assert place.app.scopes[0]["headers"] == [
            (b"host", b"x"),
            (b"x-a", b"b"),
            (b"transfer-encoding", b"chunked"),
        ]


@on_both_loops
async def test_the_application_sees_the_request_as_asgi_has_it() -> None:
    async with house() as place:
        caller = await place.call()
        await caller.send(b"\r\nGET /a%20b/c?d=%20 HTTP/1.1\r\nHost: x\r\n\r\n")
        await caller.answer()
        scope = place.app.scopes[0]
        assert (scope["type"], scope["method"], scope["path"]) == ("http", "GET", "/a b/c")
        assert (scope["raw_path"], scope["query_string"]) == (b"/a%20b/c", b"d=%20")
        assert scope["client"][0] == "127.0.0.1" and scope["http_version"] == "1.1"


@on_both_loops
async def test_pipelined_requests_are_answered_in_order_and_never_two_at_once() -> None:
    async with house() as place:
        caller = await place.call()
        place.app.gate.clear()
        await caller.send(b"".join(HEAD + b"content-length: %d\r\n\r\n" % n + b"x" * n for n in range(50)))
        assert len(place.app.scopes) == 1
        place.app.gate.set()
        assert [(await caller.answer())[2] for _ in range(50)] == [b"%d bytes" % n for n in range(50)]


@on_both_loops
async def test_requests_that_came_unasked_leave_the_loop_to_others() -> None:
    async with house() as place:
        crowd = [await place.call() for _ in range(20)]
        for caller in crowd:
            await caller.send(GET * 100)
        for _ in range(200):  # turns of the loop, of which a request needs six or seven
            await asyncio.sleep(0)
        assert len(place.app.scopes) < 500
        for caller in crowd:
            assert [(await caller.answer())[0] for _ in range(2)] == [200] * 2


@on_both_loops
async def test_chunks_are_taken_apart_for_who_asks_for_them() -> None:
    async with house() as place:
        place.app.reads = False
        caller = await place.call()
        await caller.send(HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"not even a size\r\n")
        status, headers, _ = await caller.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert await caller.is_ended()


@on_both_loops
async def test_a_caller_may_end_its_side_and_still_gets_its_answers() -> None:
    async with house() as place:
        caller = await place.call()
        place.app.gate.clear()
        await caller.send(GET + GET)
        caller.writer.write_eof()
        await settle()
        place.app.gate.set()
        assert (await caller.answer())[0] == (await caller.answer())[0] == 200
        assert await caller.is_ended()


@pytest.mark.parametrize(
    "request_", [b"GET / HTTP/1.0\r\n\r\n", b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"]
)
@on_both_loops
async def test_a_request_that_asks_for_it_ends_its_connection(request_: bytes) -> None:
    async with house() as place:
        caller = await place.call()
        await caller.send(request_)
        status, headers, _ = await caller.answer()
        assert status == 200 and headers["connection"] == "close" and await caller.is_ended()


@on_both_loops
async def test_a_head_is_answered_without_its_body_and_with_its_length() -> None:
    async with house() as place:
        caller = await place.call()
        await caller.send(b"HEAD / HTTP/1.1\r\nhost: x\r\n\r\n")
        head = await caller.reader.readuntil(b"\r\n\r\n")
        assert b"content-length: 7\r\n" in head
        await caller.send(GET)
        assert (await caller.answer())[2] == b"0 bytes"


@on_both_loops
async def test_an_answer_in_pieces_is_chunked() -> None:
    async with house() as place:
        place.app.pieces, place.app.answer = 3, b"abc"
        caller = await place.call()
        await caller.send(GET)
        head = await caller.reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding: chunked\r\n" in head
        assert await caller.reader.readuntil(b"0\r\n\r\n") == b"3\r\nabc\r\n" * 3 + b"0\r\n\r\n"


@on_both_loops
async def test_who_waits_for_it_is_told_to_go_on_when_the_body_is_wanted() -> None:
    async with house() as place:
        caller = await place.call()
        await caller.send(HEAD + b"content-length: 3\r\nexpect: 100-continue\r\n\r\n")
        assert await caller.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await caller.send(b"abc")
        assert (await caller.answer())[2] == b"3 bytes"


@on_both_loops
async def test_an_answer_before_the_end_of_the_body_reaches_a_caller_who_sends_on() -> None:
    async with house() as place:
        place.app.reads = False
        caller = await place.call()
        await caller.send(HEAD + b"content-length: 3000000\r\n\r\n" + b"x" * 100_000)
        for _ in range(20):
            await caller.send(b"x" * 100_000)
        status, headers, _ = await caller.answer()
        assert status == 200 and headers["connection"] == "close" and await caller.is_ended()


@on_both_loops
async def test_a_caller_who_goes_in_the_middle_is_told_to_the_application() -> None:
    async with house() as place:
        caller = await place.call()
        await caller.send(HEAD + b"content-length: 100000\r\n\r\nabc")
        assert place.connections.budget.used == 100_000
        caller.close()
        await place.until_closed()
        assert place.app.bodies == [None]


@on_both_loops
async def test_an_application_that_fails_is_a_500_and_its_connection_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with house() as place:

        async def broken(scope: object, receive: object, send: object) -> None:
            raise ValueError("the cause")

        place.server._app = broken
        caller = await place.call()
        await caller.send(GET)
        assert await caller.problem() == (500, "internal")
        assert "the cause" in caplog.text


@on_both_loops
async def test_a_server_that_stops_answers_what_it_has_and_takes_no_more() -> None:
    place = House()
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setblocking(False)
    place.port = listening.getsockname()[1]
    serving = asyncio.ensure_future(place.server.serve([listening]))
    await settle()
    idle, half, working, reading = [await place.call() for _ in range(4)]
    await idle.send(GET)
    await idle.answer()
    await half.send(GET[:5])
    await reading.send(HEAD + b"content-length: 20\r\n\r\nabc")
    place.app.gate.clear()
    await working.send(GET + GET)
    place.server.stop()
    await settle()
    assert await idle.is_ended() and await half.is_ended()
    with pytest.raises(OSError):
        await place.call()
    assert not serving.done()
    place.app.gate.set()
    await reading.send(b"x" * 17)
    for caller, body in ((working, b"0 bytes"), (reading, b"20 bytes")):
        status, headers, answer = await caller.answer()
        assert (status, headers["connection"], answer) == (200, "close", body)
        assert await caller.is_ended()
    async with asyncio.timeout(3):
        await serving
    assert place.connections.open == 0 and len(place.app.scopes) == 3
    for caller in place.callers:
        caller.close()
    await settle()


@on_both_loops
async def test_requests_leave_nothing_for_the_garbage_collector() -> None:
    """It runs seldom in a server: what were in circles would be memory until then."""
    async with house() as place:
        caller = await place.call()
        await caller.send(GET)
        await caller.answer()
        gc.collect()
        gc.disable()
        try:
            for _ in range(200):
                place.app.scopes.clear()
                caller.writer.write(HEAD + b"content-length: 3\r\n\r\nabc")
                await caller.answer()
            left = Counter(type(each).__name__ for each in gc.get_objects())
            assert left["Exchange"] <= 1 and left["RequestHead"] <= 1
        finally:
            gc.enable()
