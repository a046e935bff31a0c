"""The client against real sockets: sending, reuse, deadlines, ends."""

from __future__ import annotations

import asyncio

from tests.wire.posting import BODY, client, post
from tests.wire.receivers import Drip, Hang, Hear, Receiver, Reset, Say

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


def run(case):
    asyncio.run(case)


def test_a_request_arrives_whole_and_its_answer_comes_back():
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


def test_a_connection_is_used_again_after_a_clean_answer():
    async def case():
        async with Receiver((Hear(), Say(OK), Hear(), Say(OK), Hang())).running() as receiver:
            wire = client()
            first, second = await post(wire, receiver.url), await post(wire, receiver.url)
            assert (first.status, second.status, receiver.connections) == (200, 200, 1)
            assert second.connect_us is None
            await wire.close()

    run(case())


def test_no_answer_in_time_is_a_timeout_and_unknown():
    async def case():
        async with Receiver((Hear(), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, timeout_s=0.1)
            assert (answer.failure, answer.unknown, answer.status) == ("timeout", True, None)
            assert 100_000 <= answer.total_us < 150_000
            await wire.close()

    run(case())


def test_a_dripped_head_cannot_outlive_the_deadline():
    async def case():
        async with Receiver((Hear(), Drip(OK, 0.01), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, timeout_s=0.15)
            assert answer.failure == "timeout" and answer.total_us < 200_000
            await wire.close()

    run(case())


def test_a_reset_before_the_answer_is_a_reset_and_unknown():
    async def case():
        async with Receiver((Hear(), Reset())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url)
            assert (answer.failure, answer.unknown) == ("reset", True)
            await wire.close()

    run(case())


def test_a_close_before_the_answer_is_an_eof_and_unknown():
    async def case():
        async with Receiver((Hear(),)).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url)
            assert (answer.failure, answer.unknown) == ("eof", True)
            await wire.close()

    run(case())


def test_a_closed_port_is_refused_and_known():
    async def case():
        wire = client()
        answer = await post(wire, "http://127.0.0.1:21999/")
        assert (answer.failure, answer.unknown) == ("connect_refused", False)
        await wire.close()

    run(case())


def test_localhost_works_where_loopback_is_granted():
    async def case():
        async with Receiver((Hear(), Say(OK), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, f"http://localhost:{receiver.port}/")
            assert (answer.status, answer.address) == (200, "127.0.0.1")
            await wire.close()

    run(case())


def test_an_aborted_request_ends_once_as_aborted():
    async def case():
        async with Receiver((Hear(), Hang())).running() as receiver:
            wire = client()
            task = asyncio.ensure_future(post(wire, receiver.url))
            await receiver.heard.wait()
            await wire.close()
            assert (await task).failure == "aborted"

    run(case())


def test_nothing_is_sent_without_permission():
    async def case():
        async with Receiver((Hear(), Say(OK), Hang())).running() as receiver:
            wire = client()
            answer = await post(wire, receiver.url, permit=lambda: False)
            assert (answer.failure, answer.unknown, receiver.requests) == ("aborted", False, [])
            await wire.close()

    run(case())
