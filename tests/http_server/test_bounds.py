"""What a caller meets who sends too much, too slowly, or takes too little."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from surehook.core import limits
from surehook.http_server.server import FOLLOW_REST_S
from tests.http_server.house import GET, HEAD, Caller, House, house, on_both_loops, settle

KIB, MIB = 1024, 1024 * 1024


@on_both_loops
async def test_heads_that_pass_a_bound_are_refused_without_being_kept() -> None:
    async with house() as place:
        for raw, expected in (
            (b"GET /" + b"a" * 100_000, (414, "target_too_long")),
            (HEAD + b"a: b\r\n" * 20_000, (431, "head_too_large")),
            (HEAD + b"a: " + b"b" * 300_000, (431, "head_too_large")),
            (HEAD + b"a: b\r\n" * 101 + b"\r\n", (431, "head_too_large")),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", (505, "http_version")),
            (b"\x16\x03\x01\x02\x00\x01\x00", (400, "bad_request")),
            (
                HEAD + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
                (400, "bad_request"),
            ),
            (HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n", (400, "bad_request")),
            (
                HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"a: bcd\r\n" * 9_000,
                (431, "head_too_large"),
            ),
        ):
            caller = await place.call()
            caller.writer.write(raw)
            assert await caller.problem() == expected
            held = place.connections.all()
            assert sum(len(connection._held) for connection in held) == 0
        assert place.connections.refused["head_too_large"] == 4
        assert all(body is None for body in place.app.bodies)


@on_both_loops
async def test_a_request_that_follows_a_refused_one_is_never_read() -> None:
    async with house() as place:
        caller = await place.call()
        await caller.send(HEAD + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabc" + GET)
        assert await caller.problem() == (400, "bad_request")
        assert place.app.scopes == []


@on_both_loops
async def test_a_head_has_ten_seconds() -> None:
    async with house() as place:
        silent, slow, late = [await place.call() for _ in range(3)]
        await slow.send(b"GET / HT")
        await late.send(GET)
        await late.answer()
        await place.tick(5)
        await late.send(b"G")
        await place.tick(5)
        await slow.send(b"TP")
        assert place.connections.open == 3
        await place.tick()
        assert await slow.problem() == (408, "request_timeout")
        assert await silent.is_ended(), "who has said nothing is not answered"
        await late.send(GET[1:])
        assert (await late.answer())[0] == 200


@on_both_loops
async def test_an_idle_connection_ends_after_a_while() -> None:
    async with house(idle=20) as place:
        used, idle = await place.call(), await place.call()
        for caller in (used, idle):
            await caller.send(GET)
            await caller.answer()
        await place.tick(15)
        await used.send(GET)
        await used.answer()
        await place.tick(6)
        assert await idle.is_ended() and place.connections.open == 1


@on_both_loops
async def test_a_body_has_a_pace_and_a_minute() -> None:
    async with house() as place:
        stopped, dripping, steady = [await place.call() for _ in range(3)]
        for caller in (stopped, dripping, steady):
            await caller.send(HEAD + b"content-length: 200000\r\n\r\n")
        await stopped.send(b"x" * 4 * KIB)
        for _ in range(6):
            await place.tick()
            await dripping.send(b"x" * 512)
            await steady.send(b"x" * 2 * KIB)
        assert await stopped.problem() == (408, "request_timeout")
        assert await dripping.problem() == (408, "request_timeout")
        for _ in range(54):
            await place.tick()
            await steady.send(b"x" * 2 * KIB)
        await place.tick()
        assert await steady.problem() == (408, "request_timeout")
        assert place.connections.refused["body_timeout"] == 3


@on_both_loops
async def test_a_late_tick_is_one_tick() -> None:
    """A process that stood still for a minute does not charge it to its callers."""
    async with house() as place:
        caller = await place.call()
        await caller.send(b"GET")
        await place.tick()
        await caller.send(GET[3:])
        assert (await caller.answer())[0] == 200


@on_both_loops
async def test_bodies_share_a_budget_which_is_taken_before_they_are_read() -> None:
    async with house(body_bytes=16 * MIB) as place:
        first = await place.call()
        await first.send(HEAD + b"content-length: %d\r\n\r\n" % (8 * MIB) + b"x" * 100)
        assert place.connections.budget.used == 8 * MIB
        second = await place.call()
        second.writer.write(HEAD + b"content-length: %d\r\n\r\n" % (8 * MIB))
        status, headers, _ = await second.answer()
        assert status == 503 and int(headers["retry-after"]) >= 1 and await second.is_ended()
        assert place.connections.refused["too_many_bytes"] == 1
        # A part of the budget is for single events, whatever batches are on their way.
        single = await place.call()
        await single.send(HEAD + b"content-length: 200000\r\n\r\n" + b"x" * 200_000)
        assert (await single.answer())[2] == b"200000 bytes"
        chunked = await place.call()
        await chunked.send(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(17):
            await chunked.send(b"40000\r\n" + b"x" * 256 * KIB + b"\r\n")
        assert await chunked.problem() == (503, "too_many_bytes")
        assert place.connections.budget.used == 8 * MIB


@on_both_loops
async def test_small_bodies_are_taken_whatever_the_budget() -> None:
    async with house(body_bytes=16 * MIB) as place:
        place.connections.budget.used = 16 * MIB
        caller = await place.call()
        await caller.send(HEAD + b"content-length: 16000\r\n\r\n", b"x" * 16_000)
        assert (await caller.answer())[2] == b"16000 bytes"
        place.connections.budget.used = 0


@on_both_loops
async def test_a_body_larger_than_the_budget_will_ever_have_is_a_413() -> None:
    async with house(body_bytes=16 * MIB) as place:
        for length in (b"content-length: 99999999999\r\n\r\n", b"content-length: 13000000\r\n\r\n"):
            caller = await place.call()
            await caller.send(HEAD + length)
            assert await caller.problem() == (413, "body_too_large")


@on_both_loops
async def test_bodies_that_will_not_be_through_in_time_make_room_for_others() -> None:
    async with house(body_bytes=16 * MIB) as place:
        slow = await place.call()
        await slow.send(HEAD + b"content-length: %d\r\n\r\n" % (8 * MIB) + b"x" * 50_000)
        await place.tick(3)
        quick = await place.call()
        await quick.send(HEAD + b"content-length: %d\r\n\r\n" % (8 * MIB))
        assert await slow.problem() == (408, "request_timeout")
        await quick.send(*[b"x" * MIB] * 8)
        assert (await quick.answer())[2] == b"%d bytes" % (8 * MIB)


@on_both_loops
async def test_what_is_read_before_the_application_wants_it_is_one_read() -> None:
    """A caller without a key is refused before its body is wanted, and holds nothing until then."""
    async with house() as place:
        place.app.reads = False
        place.app.gate.clear()
        caller = await place.call()
        caller.writer.write(HEAD + b"content-length: %d\r\n\r\n" % (8 * MIB) + b"x" * 4 * MIB)
        for _ in range(20):
            await settle()
        (connection,) = place.connections.all()
        assert connection.body_received <= 2 * limits.READ_BYTES
        assert place.connections.budget.used == 0


@on_both_loops
async def test_what_follows_a_request_in_hand_is_one_read() -> None:
    async with house() as place:
        place.app.gate.clear()
        caller = await place.call()
        caller.writer.write(GET * 100_000)
        for _ in range(20):
            await settle()
        (connection,) = place.connections.all()
        assert len(place.app.scopes) == 1 and len(connection._held) <= limits.READ_BYTES


@on_both_loops
async def test_small_chunks_are_read_a_few_at_a_time() -> None:
    async with house() as place:
        place.app.asks.clear()
        caller = await place.call()
        caller.writer.write(
            HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 1_000 + b"0\r\n\r\n" + GET
        )
        async with asyncio.timeout(10):
            while not place.app.scopes:
                await settle()
        # It is asked for and looked at in one turn of the loop. Where a turn lay between them, a machine that was busy for
        # a millisecond had the next chunks read in it too.
        place.app.asks.set()
        steps, size = [], 0
        async with asyncio.timeout(10):
            while size < 1_000:
                await asyncio.sleep(0)
                now = max((connection.body_received for connection in place.connections.all()), default=0)
                steps.append(now - size)
                size = now
        assert 0 < max(steps) <= limits.CHUNKS_AT_ONCE
        assert [(await caller.answer())[2] for _ in range(2)] == [b"1000 bytes", b"0 bytes"]
        await caller.send(GET)
        assert (await caller.answer())[0] == 200


@on_both_loops
async def test_a_large_body_is_read_a_buffer_at_a_time() -> None:
    async with house() as place:
        caller = await place.call()
        caller.writer.write(HEAD + b"content-length: %d\r\n\r\n" % (8 * MIB) + b"x" * 8 * MIB + GET)
        steps, size = [], 0
        async with asyncio.timeout(10):
            while size < 8 * MIB:
                await asyncio.sleep(0)
                now = max((connection.body_received for connection in place.connections.all()), default=0)
                steps.append(now - size)
                size = now
        assert 0 < max(steps) <= 2 * limits.BODY_READ_BYTES
        assert [(await caller.answer())[2] for _ in range(2)] == [b"%d bytes" % (8 * MIB), b"0 bytes"]


@on_both_loops
async def test_of_several_large_bodies_one_is_read_at_a_time() -> None:
    async with house() as place:
        place.app.gate.clear()  # nobody is answered before all have been read
        callers = [await place.call() for _ in range(6)]
        for caller in callers:
            caller.writer.write(HEAD + b"content-length: %d\r\n\r\n" % (8 * MIB) + b"x" * 8 * MIB)
        steps, sizes = [], [0] * 6
        async with asyncio.timeout(20):
            while min(sizes) < 8 * MIB:
                await asyncio.sleep(0)
                now = [connection.body_received for connection in place.connections.all()]
                if min(now) > MIB:  # all have begun
                    steps.append(sum(now) - sum(sizes))
                sizes = now
        assert max(steps) <= 2 * limits.BODY_READ_BYTES
        place.app.gate.set()
        assert [(await caller.answer())[2] for caller in callers] == [b"%d bytes" % (8 * MIB)] * 6


@on_both_loops
async def test_callers_of_small_pieces_are_not_kept_where_too_many_wait() -> None:
    async with house(following=0) as place:
        chunked, pipelined, refused, healthy = [await place.call() for _ in range(4)]
        await chunked.send(HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 100)
        assert await chunked.problem() == (503, "too_many_bytes")
        await pipelined.send(GET + GET)
        assert (await pipelined.answer())[0] == 200 and await pipelined.is_ended()
        await refused.send(HEAD + b"content-length: 99999999999\r\n\r\n")
        assert (await refused.answer())[0] == 413
        await refused.send(b"x" * 100_000)
        assert await refused.is_ended()
        await healthy.send(GET)
        assert (await healthy.answer())[0] == 200
        assert place.connections.refused["small_pieces"] == 3


@on_both_loops
async def test_a_body_that_is_refused_for_its_pieces_is_not_refused_again_for_its_bytes() -> None:
    async with house(following=0, body_bytes=16 * MIB) as place:
        place.connections.budget.used = 16 * MIB
        caller = await place.call()
        await caller.send(HEAD + b"transfer-encoding: chunked\r\n\r\n", b"3e80\r\n%b\r\n" % (b"x" * 16_000))
        await caller.send(b"8\r\nxxxxxxxx\r\n" * 100)
        assert await caller.problem() == (503, "too_many_bytes")
        assert dict(place.connections.refused) == {"small_pieces": 1}
        place.connections.budget.used = 0


async def _full(place: House, count: int) -> list[Caller]:
    callers = [await place.call() for _ in range(count)]
    for caller in callers:
        await caller.send(GET)
    return callers


@on_both_loops
async def test_beyond_the_bound_the_oldest_idle_connection_makes_room() -> None:
    async with house(connections=5) as place:
        callers = await _full(place, 5)
        for caller in callers:
            await caller.answer()
        newcomer = await place.call()
        await newcomer.send(GET)
        assert (await newcomer.answer())[0] == 200
        assert await callers[0].is_ended()
        await callers[1].send(GET)
        assert (await callers[1].answer())[0] == 200


@on_both_loops
async def test_a_crowd_of_half_sent_heads_displaces_itself_and_no_idle_caller() -> None:
    async with house(connections=20) as place:
        idle = await _full(place, 5)
        for caller in idle:
            await caller.answer()
        for _ in range(60):
            await (await place.call()).send(b"GET / HTTP/1.1\r\nx-")
        assert place.connections.open == 20
        for caller in [*idle, await place.call()]:
            await caller.send(GET)
            assert (await caller.answer())[0] == 200


@on_both_loops
async def test_where_everybody_is_at_work_newcomers_are_refused_and_it_is_said_once_in_a_while() -> None:
    async with house(connections=3) as place:
        place.app.gate.clear()
        working = await _full(place, 3)
        for _ in range(4):
            assert await (await place.call()).problem() == (503, "too_many_connections")
        await place.tick(40)
        assert await (await place.call()).problem() == (503, "too_many_connections")
        await place.tick(2)
        assert [name for name, _ in place.facts.told].count("http.refused") == 1
        await place.tick(30)
        told = [fields for name, fields in place.facts.told if name == "http.refused"]
        assert [(each["reason"], each["count"]) for each in told] == [
            ("too_many_connections", 4),
            ("too_many_connections", 1),
        ]
        place.app.gate.set()
        for caller in working:
            assert (await caller.answer())[0] == 200


@on_both_loops
async def test_half_sent_heads_together_have_a_bound_in_bytes() -> None:
    async with house(partial_heads_bytes=200_000) as place:
        callers = []
        for _ in range(12):
            callers.append(await place.call())
            await callers[-1].send(HEAD + b"a: " + b"b" * 20_000)
        assert place.connections.partial_heads_bytes <= 200_000
        assert place.connections.refused["partial_heads"] == 3
        await callers[-1].send(b"\r\n\r\n")
        assert (await callers[-1].answer())[0] == 200


@on_both_loops
async def test_who_does_not_take_an_answer_is_hung_up_on() -> None:
    async with house() as place:
        place.app.answer = b"x" * 20 * MIB
        reader, never = [await place.call(receive_buffer=4096) for _ in range(2)]
        for caller in (reader, never):
            await caller.send(GET + GET)
        assert len(place.connections.answers) == 2 and len(place.app.scopes) == 2
        assert place.connections.unsent_bytes > 20 * MIB
        for _ in range(31):
            async with asyncio.timeout(5):
                await reader.reader.readexactly(64 * KIB)
            await place.tick()
        assert list(place.connections.answers) and place.connections.refused["slow_reader"] == 1
        assert len(place.connections.answers) == 1


@on_both_loops
async def test_a_body_keeps_its_time_though_an_answer_before_it_was_stuck() -> None:
    async with house() as place:
        caller = await place.call()
        await caller.send(HEAD + b"content-length: 100000\r\n\r\n")
        (connection,) = place.connections.all()
        connection.pause_writing()
        connection.resume_writing()
        await place.tick(7)
        assert await caller.problem() == (408, "request_timeout")


@on_both_loops
async def test_answers_that_nobody_takes_have_a_bound_in_bytes() -> None:
    async with house(unsent_bytes=50 * MIB) as place:
        place.app.answer = b"x" * 20 * MIB
        for _ in range(5):
            await (await place.call(receive_buffer=4096)).send(GET)
        assert place.connections.unsent_bytes <= 50 * MIB
        assert place.connections.refused["slow_reader"] == 3


@on_both_loops
async def test_a_slow_reader_of_a_last_answer_is_hung_up_on_as_well() -> None:
    async with house() as place:
        place.app.answer = b"x" * 20 * MIB
        caller = await place.call(receive_buffer=4096)
        await caller.send(b"GET / HTTP/1.0\r\n\r\n")
        await place.tick(31)
        await place.until_closed()


async def refused_at_once(place: House) -> Caller:
    place.app.reads = False
    return await place.call()


async def refused_late(place: House) -> Caller:
    """After a head that did not end in time."""
    caller = await place.call()
    await caller.send(b"POST / HTTP/1.1\r\n")
    await place.tick(11)
    return caller


async def refused_newcomer(place: House) -> Caller:
    place.app.gate.clear()
    await _full(place, 3)
    return await place.call()


async def refused(place: House) -> Caller:
    return await place.call()


LARGE = b"content-length: 9000000\r\n\r\n"
REFUSED = {
    "by the application": (refused_at_once, HEAD + LARGE, 200),
    "a body that is too large": (refused, HEAD + LARGE, 413),
    "a head that is too large": (
        refused,
        HEAD + b"cookie: " + b"x" * limits.HEAD_BYTES + b"\r\n" + LARGE,
        431,
    ),
    "a line that is too long": (refused, HEAD.replace(b"/", b"/" + b"x" * 9_000, 1) + LARGE, 414),
    "a line that is none": (refused, HEAD + b"x y\r\n" + LARGE, 400),
    "a late head": (refused_late, LARGE, 408),
    "a newcomer": (refused_newcomer, HEAD + LARGE, 503),
}


@pytest.mark.parametrize("case", REFUSED)
@on_both_loops
async def test_a_refused_caller_that_sends_all_before_it_reads_reads_why(case: str) -> None:
    """A connection that is closed over what still comes takes the answer back, and many callers look for none then."""
    begin, head, status = REFUSED[case]
    async with house(connections=3, body_bytes=8 * MIB) as place:
        caller = await begin(place)
        caller.writer.transport.set_write_buffer_limits(0)
        caller.writer.write(head + b"x" * 9_000_000)
        await caller.writer.drain()
        assert (await caller.answer())[0] == status
        assert await caller.is_ended()


@on_both_loops
async def test_a_refused_caller_that_sends_very_much_is_cut_off() -> None:
    async with house() as place:
        caller = await place.call()
        with contextlib.suppress(ConnectionError):
            await caller.send(HEAD + b"a: b\r\n" * 20_000)
            await caller.send(*[b"x" * MIB] * 13)
        await place.until_closed()


@on_both_loops
async def test_refused_callers_together_cost_so_many_bytes_a_second() -> None:
    async with house(body_bytes=16 * MIB) as place:
        callers = [await place.call() for _ in range(4)]
        for caller in callers:
            caller.writer.write(HEAD + b"content-length: 99999999999\r\n\r\n" + b"x" * 7 * MIB)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(10):
            while not (begun := _discarded(place)):
                await settle()
        since = loop.time()
        async with asyncio.timeout(10):
            while (read := _discarded(place) - begun) < MIB:
                await settle()
        turns = (loop.time() - since) / FOLLOW_REST_S + 2  # the one under way, and the clock's grain
        assert read <= turns * limits.READ_BYTES
        for caller in callers:
            assert await caller.problem() == (413, "body_too_large")


def _discarded(place: House) -> int:
    return sum(limits.LINGER_BYTES - connection._linger_bytes for connection in place.connections.ending)


@on_both_loops
async def test_a_refused_caller_that_sends_on_for_ever_is_cut_off() -> None:
    async with house() as place:
        caller = await place.call()
        await caller.send(b"\x00")
        assert (await caller.answer())[0] == 400
        await caller.send(b"x" * 100_000)
        await place.tick(limits.LINGER_S)
        assert place.connections.open == 1
        await place.tick()
        await place.until_closed()


@pytest.mark.parametrize("piece", [b"\r\n", b"\r\n\r\n"])
@on_both_loops
async def test_empty_lines_for_ever_are_no_request(piece: bytes) -> None:
    async with house() as place:
        caller = await place.call()
        with contextlib.suppress(ConnectionError):
            for _ in range(12):
                await caller.send(piece)
                await place.tick()
        await place.until_closed()
        assert place.app.scopes == []
