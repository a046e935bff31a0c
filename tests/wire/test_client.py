"""The client against real sockets: sending, reuse, deadlines, ends."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from surehook.ports.transport import Request
from tests.wire.network import Network
from tests.wire.posting import BODY, client, post, until
from tests.wire.receivers import Drip, Flood, Hang, Hear, Receiver, Reset, Say, Wait

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Runs a case on each event loop."""
    return {"asyncio": asyncio.run, "uvloop": uvloop.run}[request.param]


def test_a_request_arrives_whole_and_its_answer_comes_back(run):
    async def case():
        async with Receiver((Hear(), Say(OK), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url)
            assert (answer.status, answer.failure, answer.body, answer.truncated) == (200, None, b"ok", False)
            assert answer.address == "127.0.0.1" and answer.connect_us is not None and answer.total_us > 0
            request = receiver.requests[0]
            assert request.startswith(b"POST /hook HTTP/1.1\r\nhost: 127.0.0.1:%d\r\n" % receiver.port)
            assert request.endswith(b"content-length: %d\r\n\r\n%b" % (len(BODY), BODY))
            await wire.close()

    run(case())


def test_a_connection_is_used_again_after_a_clean_answer(run):
    async def case():
        async with Receiver((Hear(), Say(OK), Hear(), Say(OK), Hang())).running() as receiver:
            wire = client()
            first, second = await post(wire, receiver.url), await post(wire, receiver.url)
            assert (first.status, second.status, receiver.connections) == (200, 200, 1)
            assert second.connect_us is None
            await wire.close()

    run(case())


def test_no_answer_in_time_is_a_timeout_and_unknown(run):
    async def case():
        async with Receiver((Hear(), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, timeout_s=0.1)
            assert (answer.failure, answer.unknown, answer.status) == ("timeout", True, None)
            assert 100_000 <= answer.total_us < 1_000_000
            await wire.close()

    run(case())


def test_a_dripped_head_cannot_outlive_the_deadline(run):
    async def case():
        async with Receiver((Hear(), Drip(OK, 0.01), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, timeout_s=0.15)
            assert answer.failure == "timeout" and answer.total_us < 1_000_000
            await wire.close()

    run(case())


def test_a_reset_before_the_answer_is_a_reset_and_unknown(run):
    async def case():
        async with Receiver((Hear(), Reset())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url)
            assert (answer.failure, answer.unknown) == ("reset", True)
            await wire.close()

    run(case())


def test_a_close_before_the_answer_is_an_eof_and_unknown(run):
    async def case():
        async with Receiver((Hear(),)).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url)
            assert (answer.failure, answer.unknown) == ("eof", True)
            await wire.close()

    run(case())


def test_a_closed_port_is_refused_and_known(run):
    async def case():
        wire = client()
        answer = await post(wire, "http://127.0.0.1:21999/")
        assert (answer.failure, answer.unknown) == ("connect_refused", False)
        await wire.close()

    run(case())


def test_localhost_works_where_loopback_is_granted(run):
    async def case():
        async with Receiver((Hear(), Say(OK), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, f"http://localhost:{receiver.port}/")
            assert (answer.status, answer.address) == (200, "127.0.0.1")
            await wire.close()

    run(case())


def test_an_aborted_request_ends_once_as_aborted(run):
    async def case():
        async with Receiver((Hear(), Hang())).running() as receiver:
            wire = client()
            task = asyncio.ensure_future(post(wire, receiver.url))
            await receiver.heard.wait()
            await wire.close()
            assert (await task).failure == "aborted"

    run(case())


def test_nothing_is_sent_without_permission(run):
    async def case():
        async with Receiver((Hear(), Say(OK), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, permit=lambda: False)
            assert (answer.failure, answer.unknown, receiver.requests) == ("aborted", False, [])
            await wire.close()

    run(case())


class HandClock:
    """A boot clock that a test moves."""

    def __init__(self, now: float) -> None:
        self.now = now

    def boot(self) -> float:
        return self.now


def test_a_late_answer_is_late_even_before_the_tick_that_would_notice():
    async def case():
        network = Network()
        network.answers["8.8.8.8"] = b""
        clock = HandClock(100.0)
        wire = client(dialer=network, clock=clock)
        ends = []
        wire.send(Request(wire.target("http://8.8.8.8/", tenant="a"), b"", BODY, 1.0, 1.0), ends.append)
        await network.spoken_to.wait()
        clock.now = 101.0001
        next(iter(wire.shared.pool.open)).data_received(OK)
        assert [(answer.status, answer.failure, answer.unknown) for answer in ends] == [
            (None, "timeout", True)
        ]
        await wire.close()

    asyncio.run(case())


@pytest.mark.parametrize(
    "script",
    [
        (Hear(), Drip(b"HTTP/1.1 200 OK\r\n", 0.02), Hang()),
        (Hear(), Say(b"HTTP/1.1 200 OK\r\n"), Drip(b"x-a: " + b"y" * 500, 0.02), Hang()),
        (Hear(), Say(b"HTTP/1.1 103 Early\r\n\r\n"), Hang()),
        (Hang(),),
    ],
)
def test_no_phase_before_the_status_outlives_the_deadline(run, script):
    async def case():
        async with Receiver(script).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, timeout_s=0.12)
            assert answer.failure == "timeout" and 120_000 <= answer.total_us < 1_000_000
            await until(lambda: not wire.shared.pool.open)
            await wire.close()

    run(case())


@pytest.mark.parametrize(
    "tail",
    [
        Drip(b"y" * 500, 0.01),
        Flood(b"y" * 100_000),
        Hang(),
    ],
)
@pytest.mark.parametrize("head", [b"", b"content-length: 90000000\r\n", b"transfer-encoding: chunked\r\n"])
def test_no_body_changes_the_status_or_holds_the_attempt(run, head, tail):
    async def case():
        start = b"HTTP/1.1 200 OK\r\n%b\r\n" % head
        if head.startswith(b"transfer"):
            start += b"ffffff\r\n"
        async with Receiver((Hear(), Say(start), tail)).running() as receiver:
            wire = client(body_wait_s=0.1)
            answer = await post(wire, receiver.url)
            assert (answer.status, answer.failure, answer.truncated) == (200, None, True)
            assert answer.total_us < 1_000_000 and len(answer.body) <= 16_384
            await wire.close()

    run(case())


def test_the_wait_for_a_body_ends_at_the_deadline_too(run):
    async def case():
        async with Receiver((Hear(), Say(b"HTTP/1.1 200 OK\r\n\r\n"), Hang())).running() as receiver:
            wire = client(body_wait_s=5.0)
            answer = await post(wire, receiver.url, timeout_s=0.1)
            assert (answer.status, answer.truncated) == (200, True) and answer.total_us < 1_000_000
            await wire.close()

    run(case())


def test_an_early_answer_stops_the_sending(run):
    async def case():
        early = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig"
        async with Receiver((Say(early), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, body=b"x" * 50_000_000)
            assert (answer.status, answer.failure, answer.unknown) == (413, None, False)
            # A connection with an unsent rest is not used again.
            await until(lambda: not wire.shared.pool.open)
            await wire.close()

    run(case())


def test_a_deadline_while_the_body_is_being_written_is_unknown_only_if_some_left(run):
    async def case():
        async with Receiver((Hang(),)).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, body=b"x" * 50_000_000, timeout_s=0.1)
            assert (answer.failure, answer.unknown) == ("timeout", True)
            await wire.close()

    run(case())


def test_a_second_answer_nobody_asked_for_closes_the_connection(run):
    async def case():
        evil = b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n"
        scripts = (Hear(), Say(OK), Wait(0.02), Say(evil), Hang()), (Hear(), Say(OK), Hang())
        async with Receiver(*scripts).running() as receiver:
            wire = client()
            assert (await post(wire, receiver.url)).status == 200
            await until(lambda: not wire.shared.pool.open)
            assert ((await post(wire, receiver.url)).status, receiver.connections) == (200, 2)
            await wire.close()

    run(case())


def test_a_connection_that_closed_while_idle_is_not_written_to(run):
    async def case():
        async with Receiver((Hear(), Say(OK))).running() as receiver:
            wire = client()
            for count in (1, 2, 3):
                assert (await post(wire, receiver.url)).status == 200
                await until(lambda: not wire.shared.pool.open)
                assert (receiver.connections, len(receiver.requests)) == (count, count)
            await wire.close()

    run(case())


def test_idle_connections_expire(run):
    async def case():
        async with Receiver((Hear(), Say(OK), Hang())).running() as receiver:
            wire = client(idle_s=0.05)
            await post(wire, receiver.url)
            assert wire.shared.pool.open
            await until(lambda: not wire.shared.pool.open)
            await wire.close()

    run(case())


def test_idle_connections_are_bounded_per_origin_and_in_all(run):
    async def case():
        script = (Hear(), Wait(0.02), Say(OK), Hang())
        async with Receiver(script).running() as one, Receiver(script).running() as two:
            wire = client(idle_per_origin=3, idle_connections=4)
            await asyncio.gather(
                *(post(wire, one.url) for _ in range(6)), *(post(wire, two.url) for _ in range(6))
            )
            await until(lambda: len(wire.shared.pool.open) == 4)
            assert (one.connections, two.connections) == (6, 6)
            await wire.close()

    run(case())


def test_connections_are_bounded_and_idle_ones_make_room(run):
    async def case():
        async with (
            Receiver((Hear(), Hang())).running() as busy,
            Receiver((Hear(), Say(OK), Hang())).running() as quick,
        ):
            wire = client(connections=3)
            waiting = [asyncio.ensure_future(post(wire, busy.url, timeout_s=0.3)) for _ in range(2)]
            await until(lambda: len(busy.requests) == 2)
            assert (await post(wire, quick.url)).status == 200
            third = asyncio.ensure_future(post(wire, busy.url, timeout_s=0.2))
            await until(lambda: len(busy.requests) == 3)
            assert (await post(wire, quick.url)).failure == "no_resources"
            assert {(await task).failure for task in (*waiting, third)} == {"timeout"}
            await wire.close()

    run(case())


def test_an_abort_ends_any_phase_once(run):
    async def case():
        network = Network()
        network.answers = {"8.8.8.8": asyncio.Event(), "1.1.1.1": b""}
        wire = client(dialer=network)
        ends = []
        for url in ("http://8.8.8.8/", "http://1.1.1.1/", "http://10.0.0.1/"):
            request = Request(wire.stored(url, tenant="a"), b"", BODY, 5.0, 5.0)
            exchange = wire.send(request, ends.append)
            for _ in range(3 if "1.1" in url else 1):
                await asyncio.sleep(0)
            exchange.abort()
            exchange.abort()
            for _ in range(3):
                await asyncio.sleep(0)
        assert [(answer.failure, answer.unknown) for answer in ends] == [
            ("aborted", False), ("aborted", True), ("address_forbidden", False),
        ]  # fmt: skip
        await wire.close()
        assert len(ends) == 3

    run(case())


def test_after_close_everything_is_aborted_and_nothing_is_left(run):
    async def case():
        async with Receiver((Hear(), Hang())).running() as receiver:
            wire = client()
            tasks = [asyncio.ensure_future(post(wire, receiver.url)) for _ in range(3)]
            await receiver.heard.wait()
            await wire.close()
            assert {(await task).failure for task in tasks} == {"aborted"}
            assert (await post(wire, receiver.url)).failure == "aborted"
            assert not wire.shared.pool.open

    run(case())


def test_an_error_of_the_receiver_of_answers_harms_nobody_else(run):
    async def case():
        async with Receiver((Hear(), Say(OK), Hear(), Say(OK), Hang())).running() as receiver:
            wire, told, over = client(), [], asyncio.Event()
            asyncio.get_running_loop().set_exception_handler(
                lambda _, context: (told.append(context), over.set())
            )

            def done(answer):
                raise RuntimeError

            wire.send(Request(wire.target(receiver.url, tenant="a"), b"", BODY, 2.0, 2.0), done)
            await over.wait()
            assert ((await post(wire, receiver.url)).status, receiver.connections, len(told)) == (200, 1, 1)
            await wire.close()

    run(case())


@pytest.mark.parametrize("method", [b"PUT", b"PATCH", b"POST"])
def test_the_method_is_the_requests(run, method):
    async def case():
        async with Receiver((Hear(), Say(OK), Hang())).running() as receiver:
            wire = client()
            await post(wire, receiver.url, method=method)
            assert receiver.requests[0].startswith(method + b" /hook HTTP/1.1\r\n")
            await wire.close()

    run(case())


def test_headers_over_four_kib_keep_what_decisions_need(run):
    async def case():
        lines = b"".join(b"x-%d: %b\r\n" % (n, b"y" * 500) for n in range(12)) + b"Retry-After: 7\r\n"
        async with Receiver(
            (Hear(), Say(b"HTTP/1.1 503 Busy\r\n%bcontent-length: 0\r\n\r\n" % lines), Hang())
        ).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url)
            assert len(answer.headers) <= 4096 and answer.headers.startswith(b"Retry-After: 7\r\n")
            assert answer.headers.endswith(b"\r\n")
            await wire.close()

    run(case())


def test_a_reset_while_idle_is_noticed(run):
    async def case():
        async with Receiver((Hear(), Say(OK), Wait(0.02), Reset())).running() as receiver:
            wire = client()
            await post(wire, receiver.url)
            await until(lambda: not wire.shared.pool.open)
            await wire.close()

    run(case())


@pytest.mark.parametrize(
    ("said", "failure"),
    [(OK, "bad_framing"), (b"SSH-2.0-x\r\n", "not_http"), (b"HTTP/1.1 408", "bad_framing")],
)
def test_nothing_said_before_the_request_is_an_answer_to_it(said, failure):
    class Hasty(Network):
        async def connect(self, address, port, protocol):
            transport = await super().connect(address, port, protocol)
            protocol.data_received(said)
            return transport

    async def case():
        network = Hasty()
        wire = client(dialer=network)
        answer = await post(wire, "http://8.8.8.8/")
        assert (answer.status, answer.failure, answer.unknown, network.heard) == (None, failure, False, [])
        await until(lambda: not wire.shared.pool.open)
        await wire.close()

    asyncio.run(case())


@pytest.mark.parametrize(
    ("left", "unknown"), [(len(BODY) + 10, False), (len(BODY), False), (len(BODY) - 1, True), (0, True)]
)
def test_a_failure_is_unknown_exactly_if_a_byte_of_the_body_was_written(left, unknown):
    async def case():
        network = Network()
        network.answers["8.8.8.8"] = b""
        wire = client(dialer=network)
        task = asyncio.ensure_future(post(wire, "http://8.8.8.8/", timeout_s=0.02))
        await network.spoken_to.wait()
        next(iter(wire.shared.pool.open)).transport.unwritten = left
        answer = await task
        assert (answer.failure, answer.unknown) == ("timeout", unknown)
        await wire.close()

    asyncio.run(case())
