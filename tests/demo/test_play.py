"""The parts of the demonstration: its plan, its publisher, its stage, and the whole play."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from surehook.client.calls import ApiCall, ServerUrl
from surehook.client.sockets import Sockets
from surehook.core.errors import Problem
from surehook.core.policy import parse_policy
from surehook.core.profiles import PROFILES
from surehook.demo.children import Receivers
from surehook.demo.plan import END_S, PARTS, PUBLISH_S, SETTLE_S, STEPS, DemoEvent, workflow
from surehook.demo.publishing import DemoPublisher
from surehook.host.ports import free_port
from tests.client.stand_in import Heard, answer, stand_in
from tests.demo.test_tally import LINE


def test_every_document_takes_every_step_in_order() -> None:
    steps = list(workflow(3))
    assert len(steps) == 12
    assert len({step.key for step in steps}) == 12
    for number in (1, 2, 3):
        mine = [step for step in steps if step.subject == f"doc_{number:04d}"]
        assert [step.type for step in mine] == list(STEPS)
        assert [step.sequence for step in mine] == [1, 2, 3, 4]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_every_demonstration_policy_is_one_the_product_takes(part: object) -> None:
    try:
        policy = parse_policy(part.policy, PROFILES)  # type: ignore[attr-defined]
    except Problem as problem:  # pragma: no cover
        pytest.fail(str(problem))
    assert policy.name is None


def test_the_play_fits_in_a_minute_with_air_for_set_up() -> None:
    assert PUBLISH_S + SETTLE_S <= END_S <= 55


def steps(count: int) -> list[DemoEvent]:
    return [DemoEvent("a", f"s{n}", n, f"k{n}", {"n": n}) for n in range(count)]


def wait_until(is_so: object, seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while not is_so():  # type: ignore[operator]
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.005)


def test_the_publisher_repeats_a_lost_answer_under_the_same_key_and_counts_it_once() -> None:
    heard_keys: list[str] = []
    kept: dict[str, int] = {}

    def server(heard: Heard) -> bytes | None:
        key = heard.headers["idempotency-key"]
        heard_keys.append(key)
        kept.setdefault(key, len(kept))
        if heard_keys.count(key) == 1 and key in ("k1", "k3"):
            return None  # on disk, but the answer is lost
        return answer(202, {"id": f"evt_{kept[key]}", "deliveries": 3})

    with stand_in(server) as fake:
        publisher = DemoPublisher(fake.url, "key", steps(6), seconds=0)
        publisher.start()
        wait_until(lambda: publisher.is_done)
        publisher.stop()
    assert publisher.failure is None
    assert publisher.share == 1.0
    assert sum(publisher.accepted.values()) == 18
    assert sorted(heard_keys) == ["k0", "k1", "k1", "k2", "k3", "k3", "k4", "k5"]


def test_the_publisher_stops_at_a_refusal_and_says_so() -> None:
    with stand_in(answer(422, {"code": "unknown_tenant", "detail": "No."})) as fake:
        publisher = DemoPublisher(fake.url, "key", steps(50), seconds=0)
        publisher.start()
        wait_until(lambda: publisher.is_done)
        publisher.stop()
    assert "unknown_tenant" in str(publisher.failure)
    assert len(fake.heard) <= 4


def test_the_stage_has_four_that_listen_a_road_and_one_that_refuses_and_remembers_all() -> None:
    receivers = Receivers(free_port())
    receivers.start()
    try:
        place = ServerUrl.of(receivers.urls["healthy"])
        wire = Sockets(ServerUrl(place.url, False, place.host, place.port, ""), timeout_s=5)
        reply = wire.exchange(
            ApiCall("POST", place.prefix, b"{}"), {"host": "x", "webhook-delivery-id": "dlv_1"}
        )
        road = ServerUrl.of(receivers.urls["inbox"])
        socket.create_connection((road.host, road.port), timeout=5).close()
        wire.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", ServerUrl.of(receivers.urls["refusing"]).port), timeout=5)
        seen = receivers.seen()
    finally:
        receivers.stop()
    assert reply.status == 200
    assert set(seen) == {part.name for part in PARTS}
    assert seen["healthy"].seen["dlv_1"].answered
    assert seen["flaky"].seen == {}


def test_a_free_port_is_free() -> None:
    with socket.create_server(("127.0.0.1", free_port())):
        pass


@pytest.mark.slow
def test_nothing_is_lost_or_applied_twice_when_both_ends_are_killed_in_the_middle() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "surehook", "demo", "--documents", "40"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    last = ran.stdout.splitlines()[-1]
    assert ran.returncode == 0, ran.stderr
    assert LINE.fullmatch(last)
    counts = dict(part.split("=") for part in last.split()[1:])
    assert counts["lost"] == "0"
    assert int(counts["accepted"]) == 40 * (4 + 4 + 4 + 1 + 1 + 1)
    assert int(counts["delivered"]) >= 40 * (4 + 4 + 1)
    assert int(counts["applied"]) == 40 * 4
    assert counts["applied_twice"] == "0"
    assert int(counts["duplicated"]) > 0
    assert ran.stderr.count("kill -9") == 2


@pytest.mark.slow
def test_a_person_who_has_seen_enough_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "surehook", "demo", "--documents", "40"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in the background are deaf to it
    )  # fmt: skip
    assert demo.stderr is not None
    try:
        while "publishing" not in (line := demo.stderr.readline()):
            assert line, "it ended"
        children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()
        demo.send_signal(signal.SIGINT)
        out, _ = demo.communicate(timeout=30)
    finally:
        demo.kill()
        demo.wait()
    assert len(children) == 3
    assert (demo.returncode, out) == (130, "")
    assert [child for child in children if Path(f"/proc/{child}").exists()] == []
    assert list(tmp_path.iterdir()) == []
