"""Real processes of several roles on one PostgreSQL: what a user of the API, a receiver and an operator see."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from lab.bench.server import Launch, Server, product_command
from lab.bench.stage import TENANT, Sink, receiver
from tests.e2e.calling import until

pytestmark = pytest.mark.slow

Start = Callable[..., Server]


@pytest.fixture
def start(database: str, tmp_path: Path) -> Iterator[Start]:
    """`start("--role", "api")`: a ready process on the test's own ledger; all are stopped afterwards."""
    with ExitStack() as stack:
        made = 0

        def begin(*flags: str, ready: bool = True) -> Server:
            nonlocal made
            made += 1
            folder = tmp_path / f"node{made}"
            folder.mkdir()
            server = Server(
                Launch(folder=folder, command=(*product_command(), *flags), database_url=database)
            )
            stack.callback(server.stop)
            server.start()
            if ready:
                server.wait_ready()
            return server

        yield begin


@pytest.fixture
def sink() -> Iterator[Sink]:
    with receiver() as made:
        yield made


def publish(server: Server, count: int) -> None:
    for start in range(0, count, 500):
        rows = [
            {"tenant": TENANT, "type": "a.b", "data": {"n": number}}
            for number in range(start, min(start + 500, count))
        ]
        answers = server.api.call("POST", "/v1/events/batch", rows)
        assert all("id" in answer for answer in answers), answers[:3]


def arrived(sink: Sink, count: int, *, seconds: float = 30.0) -> None:
    until(lambda: sink.count().answered >= count, lambda: f"{sink.count()} of {count}", seconds)


def log(server: Server) -> str:
    return server.log.read_text(errors="replace")


def test_an_endpoint_made_on_one_node_gets_the_next_event_of_any_other(start: Start, sink: Sink) -> None:
    one, two = start("--role", "api"), start()
    one.api.tenant(TENANT)
    for number in range(5):
        one.api.endpoint(TENANT, sink.url(f"/ok/{number}"), ["*"])
        answer = two.api.call("POST", "/v1/events", {"tenant": TENANT, "type": "a.b", "data": {}})
        assert answer["deliveries"] == number + 1
    arrived(sink, 15)


def test_each_role_answers_its_part(start: Start) -> None:
    console, worker = start("--role", "console"), start("--role", "worker", "--lane", "retry")
    console.api.tenant(TENANT)
    event = {"tenant": TENANT, "type": "a.b", "data": {}}
    assert console.api.raw("POST", "/v1/events", event)[0] == 421
    assert console.api.raw("GET", "/v1/events")[0] == 200
    assert worker.api.raw("GET", "/v1/events")[0] == 421
    assert worker.api.raw("GET", "/healthz")[0] == 200
    assert b'surehook_slots{lane="first"} 0' in worker.api.raw("GET", "/metrics")[1]


def test_a_pause_on_one_node_stops_what_another_sends_and_activation_drains_it(
    start: Start, sink: Sink
) -> None:
    api = start("--role", "api")
    start("--role", "worker")
    api.api.tenant(TENANT)
    endpoint = api.api.endpoint(TENANT, sink.url("/ok/0"), ["*"])
    publish(api, 10)
    arrived(sink, 10)
    api.api.set_status(endpoint, "paused")
    publish(api, 200)
    until(lambda: sum(int(lane["parked"]) for lane in api.api.lanes()) == 200, "it happens", 20)
    assert sink.count().answered == 10
    api.api.set_status(endpoint, "active")
    arrived(sink, 210)


def test_lanes_of_their_own_workers_deliver_firsts_and_retries(start: Start, sink: Sink) -> None:
    api = start("--role", "api")
    start("--role", "worker", "--lane", "first")
    start("--role", "worker", "--lane", "retry")
    api.api.tenant(TENANT)
    policy = {"schedule": {"fixed": [0.5, 0.5]}, "jitter": None, "breaker": None}
    api.api.endpoint(TENANT, sink.url("/status/500"), ["*"], policy)
    publish(api, 5)
    until(lambda: len(list(api.api.pages("/v1/deliveries", state="dead"))) == 5, "it happens", 30)
    for row in api.api.pages("/v1/deliveries"):
        lanes = [entry["lane"] for entry in api.api.attempts(row["id"])]
        assert lanes == ["first", "retry", "retry"]


def test_a_stopped_workers_work_goes_to_the_other_at_once(start: Start, sink: Sink) -> None:
    api, one, two = start("--role", "api"), start("--role", "worker"), start("--role", "worker")
    api.api.tenant(TENANT)
    api.api.endpoint(TENANT, sink.url("/d/50"), ["*"])
    publish(api, 3_000)
    until(lambda: sink.count().answered > 100, "it happens", 20)
    assert one.stop() < 15
    assert one.process is not None
    assert one.process.returncode == 0
    arrived(sink, 3_000)
    report = sink.report()
    assert sink.count().answered == 3_000, "a worker that is stopped in order repeats nothing"
    assert report is not None
    assert two.alive()


def test_processes_share_a_port_and_a_killed_one_is_replaced(start: Start, sink: Sink) -> None:
    server = start("--processes", "2", "--show-processes")
    until(lambda: log(server).count(" serves (pid ") == 2, "it happens", 60)
    server.api.tenant(TENANT)
    server.api.endpoint(TENANT, sink.url("/d/50"), ["*"])
    pids = children(server.pid)
    assert len(pids) == 2
    publish(server, 1_000)
    until(lambda: sink.count().answered > 50, "it happens", 20)
    os.kill(pids[1], signal.SIGKILL)
    until(lambda: "was killed by signal 9" in log(server), "it happens", 20)
    server.api.close()
    publish(server, 200)
    arrived(sink, 1_200)
    until(lambda: len(children(server.pid)) == 2, "it happens", 30)
    until(lambda: log(server).count(" serves (pid ") == 3, "it happens", 60)
    server.stop()
    assert server.process is not None
    assert server.process.returncode == 0
    assert children(server.pid) == []


def test_processes_end_when_their_parent_is_killed(start: Start) -> None:
    server = start("--processes", "2", "--show-processes")
    until(lambda: log(server).count(" serves (pid ") == 2, "it happens", 60)
    pids = children(server.pid)
    os.kill(server.pid, signal.SIGKILL)
    assert server.process is not None
    server.process.wait()
    server.api.close()
    until(lambda: not any(alive(pid) for pid in pids), "it happens", 30)


def test_sqlite_refuses_to_be_shared(tmp_path: Path) -> None:
    for flags, key in ((("--processes", "2"), "processes"), (("--role", "worker"), "role")):
        ran = subprocess.run(
            [*product_command(), *flags],
            cwd=tmp_path,
            env={name: value for name, value in os.environ.items() if not name.startswith("SUREHOOK_")},
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert ran.returncode == 2
        assert f"error: {key}:" in ran.stderr
        assert "SQLite serves one process" in ran.stderr


def test_a_frozen_worker_sends_nothing_that_was_taken_over(start: Start, sink: Sink) -> None:
    api, one = start("--role", "api"), start("--role", "worker")
    api.api.tenant(TENANT)
    api.api.endpoint(TENANT, sink.url("/d/50"), ["*"])
    publish(api, 500)
    until(lambda: sink.count().answered > 50, "it happens", 20)
    os.kill(one.pid, signal.SIGSTOP)
    frozen_at = time.monotonic()
    two = start("--role", "worker")
    arrived(sink, 500, seconds=40)
    assert 10 <= time.monotonic() - frozen_at <= 25
    before = sink.count().answered
    os.kill(one.pid, signal.SIGCONT)
    until(lambda: '"node.evicted"' in log(one), "it happens", 20)
    until(one.api.ready, "it happens", 20)
    assert sink.count().answered == before
    publish(api, 200)
    arrived(sink, before + 200)
    assert two.alive()


def children(pid: int) -> list[int]:
    """The living children of a process, oldest first."""
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [int(child) for child in listed]


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
