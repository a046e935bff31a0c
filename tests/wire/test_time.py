"""Deadlines to the millisecond, on virtual time and a network in memory: no socket, no thread, no wall clock."""

from __future__ import annotations

import asyncio

import pytest

from lab.sim.loop import Process, run
from surehook.ports.resolver import Resolved
from surehook.wire.client import WireClient
from surehook.wire.settings import WireSettings
from surehook.wire.wheel import GRACE_S, NEVER, TICK_S, Wheel
from tests.wire.network import OK, Network
from tests.wire.posting import NOBODY, Names, post

URL, PUBLIC, OTHER = "https://hooks.company.com/in", "8.8.8.8", "1.1.1.1"
LATE_S = TICK_S + 0.002  # one tick, and what the virtual loop itself adds


class LoopClock:
    def boot(self) -> float:
        return asyncio.get_running_loop().time()


class SlowNames(Names):
    """Takes its time."""

    async def resolve(self, host: str) -> Resolved:
        await asyncio.sleep(30)
        return await super().resolve(host)


def play(case, *, names=None, network=None, **settings):
    """Run `case(wire, network)` on virtual time; what it returns, and how many seconds passed."""

    async def main():
        loop = asyncio.get_running_loop()
        wires = network or Network()
        resolver = names or Names({"hooks.company.com": (PUBLIC,), "two.company.com": (PUBLIC, OTHER)})
        wire = WireClient(
            clock=LoopClock(),
            resolver=resolver,
            dialer=wires,
            settings=WireSettings(allow_http=True, **settings),
            context=NOBODY,
        )
        began = loop.time()
        result = await case(wire, wires)
        took = loop.time() - began
        await wire.close()
        return result, took

    return run(main())


class Later(Network):
    """Answers each request after some seconds, piece by piece: [(seconds since the request, bytes), …]."""

    def __init__(self, *pieces: tuple[float, bytes]) -> None:
        super().__init__()
        self.pieces = pieces

    async def connect(self, address, port, protocol):
        transport = await super().connect(address, port, protocol)

        def reply(request):
            for after_s, data in self.pieces:
                asyncio.get_running_loop().call_later(after_s, transport.say, data)
            return b""

        self.answers[address] = reply
        return transport


@pytest.mark.parametrize(
    ("after_s", "status", "failure"),
    [(0.9, 200, None), (0.999, 200, None), (1.001, None, "timeout"), (1.004, None, "timeout")],
)
def test_an_answer_counts_until_its_deadline_and_not_a_millisecond_longer(after_s, status, failure):
    answer, took = play(lambda wire, _: post(wire, URL, timeout_s=1.0), network=Later((after_s, OK)))
    assert (answer.status, answer.failure, answer.unknown) == (status, failure, failure is not None)
    assert took <= 1.0 + LATE_S and abs(took - answer.total_us / 1e6) < 0.002


@pytest.mark.parametrize("timeout_s", [0.05, 1.0, 2.0, 15.0, 60.0])
def test_silence_ends_at_the_deadline(timeout_s):
    answer, took = play(lambda wire, _: post(wire, URL, timeout_s=timeout_s), network=Later())
    assert answer.failure == "timeout" and timeout_s <= took <= timeout_s + LATE_S


def test_a_body_may_take_a_second_after_the_head_and_no_more():
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
    answer, took = play(
        lambda wire, _: post(wire, URL, timeout_s=9), network=Later((0.5, head), (1.4, b"in"), (1.45, b"ok"))
    )
    assert (answer.body, answer.truncated) == (b"inok", False) and took < 1.5
    answer, took = play(
        lambda wire, _: post(wire, URL, timeout_s=9),
        network=Later((0.5, head), *((0.6 + n / 10, b"") for n in range(50)), (1.4, b"in")),
    )
    assert (answer.status, answer.body, answer.truncated) == (
        200,
        b"in",
        True,
    ) and 1.5 <= took <= 1.5 + LATE_S


@pytest.mark.parametrize(("connect_s", "timeout_s", "ends_s"), [(2.0, 10.0, 2.0), (5.0, 1.0, 1.0)])
@pytest.mark.parametrize("phase", ["dns_timeout", "connect_timeout", "tls_timeout", "proxy_failure"])
def test_each_phase_of_opening_ends_at_the_nearer_deadline_with_its_own_name(
    phase, connect_s, timeout_s, ends_s
):
    class Stuck(Network):
        async def connect(self, address, port, protocol):
            if phase == "connect_timeout":
                await asyncio.sleep(99)
            return await super().connect(address, port, protocol)

        async def secure(self, transport, protocol, context, name, session):
            await asyncio.sleep(99)
            return transport

    network = Stuck()
    network.answers["9.9.9.9"] = b""
    answer, took = play(
        lambda wire, _: post(wire, URL, timeout_s=timeout_s, connect_timeout_s=connect_s),
        names=SlowNames({}) if phase == "dns_timeout" else None,
        network=network,
        proxy="http://9.9.9.9:3128" if phase == "proxy_failure" else None,
    )
    assert (answer.failure, answer.unknown) == (phase, False)
    assert ends_s <= took <= ends_s + LATE_S


def test_the_second_address_is_tried_a_quarter_of_a_second_later():
    async def case(wire, network):
        network.answers[PUBLIC] = asyncio.Event()
        return await post(wire, URL.replace("hooks", "two"))

    answer, took = play(case)
    assert answer.address == OTHER and 0.25 <= took < 0.26


def test_an_idle_connection_lives_four_seconds_and_less_if_the_server_says_so():
    async def lifetime(wire, network):
        await post(wire, URL)
        at = asyncio.get_running_loop().time()
        while wire.shared.pool.open:  # noqa: ASYNC110 (virtual time)
            await asyncio.sleep(0.01)
        return asyncio.get_running_loop().time() - at

    found, _ = play(lifetime)
    assert 4.0 <= found <= 4.0 + LATE_S + 0.01
    network = Network()
    network.answers[PUBLIC] = OK.replace(b"\r\n\r\n", b"\r\nKeep-Alive: timeout=3, max=9\r\n\r\n")
    found, _ = play(lifetime, network=network)
    assert 2.0 <= found <= 2.0 + LATE_S + 0.01


def test_a_thousand_exchanges_on_one_connection_keep_no_timer_each():
    async def case(wire, network):
        for _ in range(1_000):
            await post(wire, URL, timeout_s=5.0)
        return len(wire.shared.wheel._slots), len(network.dialed)

    (slots, dialed), _ = play(case)
    assert slots <= 3 and dialed == 1


def test_short_and_long_deadlines_share_a_connection():
    async def case(wire, network):
        ends = []
        for timeout_s in (9.0, 0.5, 3.0, 0.5):
            network.answers[PUBLIC] = b"" if timeout_s < 1 else OK
            ends.append(
                ((await post(wire, URL, timeout_s=timeout_s)).failure, asyncio.get_running_loop().time())
            )
        return ends

    ends, took = play(case)
    assert [failure for failure, _ in ends] == [
        None,
        "timeout",
        None,
        "timeout",
    ] and 1.0 <= took <= 1.0 + 2 * LATE_S


class Thing:
    def __init__(self, due: float, loop: asyncio.AbstractEventLoop) -> None:
        self.due, self.alarm, self.loop, self.rang = due, NEVER, loop, []

    def expire(self, now: float) -> None:
        self.rang.append(self.loop.time())


def test_the_wheel_rings_once_in_time_and_never_early_whatever_moved():
    async def main():
        loop = asyncio.get_running_loop()
        wheel = Wheel(loop.time)
        start = loop.time()
        things = [Thing(start + n * 0.0013, loop) for n in range(1_000)]
        for thing in things:
            wheel.watch(thing)
        moved, earlier, dropped = (Thing(start + 1.0, loop) for _ in range(3))
        for thing in (moved, earlier, dropped):
            wheel.watch(thing)
        moved.due, earlier.due, dropped.due = start + 5.0, start + 0.2, NEVER
        wheel.watch(moved)
        wheel.watch(earlier)
        await asyncio.sleep(10)
        for thing in [*things, moved, earlier]:
            assert len(thing.rang) == 1
            assert -1e-5 <= thing.rang[0] - thing.due <= 2 * TICK_S
        assert dropped.rang == [] and not wheel._slots
        wheel.close()

    run(main())


def test_an_answer_that_came_while_the_process_stood_still_is_read_first():
    """SIGSTOP, a moved virtual machine: the kernel took the answer in time, and nobody was there to read it."""

    async def case(loop, process, later):
        answers = [loop.spawn(process, later(after_s)) for after_s in (0.5, 3.0, 99.0)]
        await asyncio.sleep(0.1)
        loop.freeze(process)
        await asyncio.sleep(4.0)
        thawed = loop.time()
        loop.thaw(process)
        ends = [await answer for answer in answers]
        return [(answer.status, answer.failure) for answer in ends], loop.time() - thawed

    for seed in range(10):  # in whatever order what waited is run
        ends, took = frozen(case, seed)
        assert ends == [(200, None), (200, None), (None, "timeout")]
        assert took <= GRACE_S + LATE_S


def test_an_answer_that_comes_within_the_grace_counts_and_its_own_deadline_holds_for_the_next_request():
    async def case(loop, process, later):
        late = loop.spawn(process, later(4.5))  # 0.4 s after the thaw
        await asyncio.sleep(0.1)
        loop.freeze(process)
        await asyncio.sleep(4.0)
        loop.thaw(process)
        first = await late
        second = await loop.spawn(process, later(1.2))
        return [(answer.status, answer.failure) for answer in (first, second)]

    for seed in range(10):
        assert frozen(case, seed) == [(200, None), (None, "timeout")]


def test_dialling_that_a_standstill_outlasted_says_nothing_about_the_receiver():
    async def case(loop, process, later):
        call = loop.spawn(process, later(None))
        await asyncio.sleep(0.1)
        loop.freeze(process)
        await asyncio.sleep(4.0)
        loop.thaw(process)
        answer = await call
        return answer.status, answer.failure, answer.unknown

    assert frozen(case, 0) == (None, "aborted", False)


def frozen(case, seed):
    """Run `case(loop, process, later)`: `later(seconds)` posts to a receiver that answers then, with a second's patience;
    None: it cannot be reached."""

    async def main():
        loop = asyncio.get_running_loop()
        process = Process("sender")

        async def later(after_s):
            network = Later((after_s, OK)) if after_s is not None else Unreachable()
            wire = WireClient(
                clock=LoopClock(),
                resolver=Names({"hooks.company.com": (PUBLIC,)}),
                dialer=network,
                settings=WireSettings(allow_http=True),
                context=NOBODY,
            )
            answer = await post(wire, URL, timeout_s=1.0)
            await wire.close()
            return answer

        return await case(loop, process, later)

    return run(main(), seed=seed)


class Unreachable(Network):
    async def connect(self, address, port, protocol):
        await asyncio.sleep(99)
