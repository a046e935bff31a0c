"""Callers who mean harm, on a real server: what they get, what the server holds for them, and who is served beside them."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.bench import processes
from lab.bench.server import KEY
from tests.e2e.calling import Caller, check_problem, until
from tests.e2e.shop import Shop

MIB = 1 << 20
GROWTH_MB = 48  # of the whole process beside an attack of tens of MB
HEAD = b"POST /v1/events HTTP/1.1\r\nhost: x\r\n"
KEYED = HEAD + f"authorization: Bearer {KEY}\r\n".encode()
CONNECTIONS = 200


@pytest.fixture(scope="module")
def besieged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A server that lets 200 callers connect."""
    shop = Shop(
        tmp_path_factory.mktemp("besieged"), SUREHOOK_CONNECTIONS=str(CONNECTIONS), SUREHOOK_BODIES_MB="16"
    )
    try:
        shop.start()
        yield shop
    finally:
        shop.close()


class Neighbour:
    """Publishes on one connection while something else goes on; every answer has to be 202."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        shop.api.close()  # an idle connection may have had to make room
        self._tenant = shop.tenant()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.statuses: list[int] = []
        self.slowest = 0.0

    def _run(self) -> None:
        caller = Caller(self._shop.server.port, KEY)
        while not self._stop.is_set():
            began = time.monotonic()
            answer = caller.ask("POST", "/v1/events", {"tenant": self._tenant, "type": "a", "data": 1})
            self.statuses.append(answer.status)
            self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(0.01)
        caller.close()

    def is_answered_again(self) -> None:
        """Wait for its next answer. Its connection is not the oldest of the idle ones then, however slow this machine is."""
        before = len(self.statuses)
        until(lambda: len(self.statuses) > before or not self._thread.is_alive(), "the neighbour is answered")

    def __enter__(self) -> Neighbour:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        assert self.statuses and set(self.statuses) == {202}, self.statuses[-10:]
        assert self.slowest < 2.0, self.slowest  # the machine may be busy; a blocked server is not


@contextlib.contextmanager
def siege(shop: Shop) -> Iterator[Neighbour]:
    """Around an attack: a neighbour publishes, and the process does not grow."""
    before, _ = processes.memory_mb(shop.server.pid)
    processes.reset_peak(shop.server.pid)
    with Neighbour(shop) as neighbour:
        yield neighbour
    peak = processes.memory_mb(shop.server.pid)[1]
    assert peak < before + GROWTH_MB, (before, peak)


def connect(shop: Shop) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", shop.server.port), timeout=15)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def pour(connection: socket.socket, begin: bytes, piece: bytes, count: int) -> None:
    """Send for as long as it is taken."""
    with contextlib.suppress(OSError):
        connection.sendall(begin)
        for _ in range(count):
            connection.sendall(piece)


def answer(connection: socket.socket) -> bytes:
    """Everything until the server ends; b"" where it only hung up."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65_536):
            found += part
    return found


def refused(raw: bytes) -> tuple[int, str]:
    """Status and code of the one answer, which ends its connection and is a whole problem."""
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"\r\nconnection: close" in head and b"application/problem+json" in head, raw[:300]
    problem = json.loads(body)
    check_problem(problem)
    assert int(head.split()[1]) == problem["status"]
    return problem["status"], problem["code"]


FLOODS: dict[str, tuple[bytes, bytes]] = {
    "header lines": (HEAD, b"x-a: " + b"b" * 60 + b"\r\n"),
    "one header value": (HEAD + b"x-a: ", b"b" * 64),
    "a long URL": (b"GET /", b"u" * 64),
    "trailers": (
        KEYED + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n",
        b"x-a: " + b"b" * 60 + b"\r\n",
    ),
    "chunk extensions": (KEYED + b"transfer-encoding: chunked\r\n\r\n2;", b"x" * 64),
    "tiny chunks": (KEYED + b"transfer-encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 10),
    "empty lines": (b"", b"\r\n" * 32),
    "no HTTP at all": (b"\x00", b"\x00" * 64),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_bytes_without_an_end_are_cut_off_and_never_kept(besieged: Shop, flood: str) -> None:
    begin, piece = FLOODS[flood]
    with siege(besieged):
        for _ in range(3):
            with connect(besieged) as connection:
                began = time.monotonic()
                pour(connection, begin, piece * 1_000, 300)
                answer(connection)
                assert time.monotonic() - began < 10


def test_a_body_of_tens_of_megabytes_is_refused_by_its_length(besieged: Shop) -> None:
    with siege(besieged), connect(besieged) as connection:
        connection.sendall(KEYED + b"content-length: 30000000\r\n\r\n")
        assert refused(answer(connection)) == (413, "body_too_large")
    with connect(besieged) as connection:
        pour(
            connection,
            KEYED + b"transfer-encoding: chunked\r\n\r\n",
            b"10000\r\n" + b"x" * 65_536 + b"\r\n",
            5,
        )
        assert answer(connection).split()[1] == b"413"


def test_half_sent_batches_hold_no_more_than_their_budget(besieged: Shop) -> None:
    begin = KEYED.replace(b"events", b"events/batch") + b"content-length: 8000000\r\n\r\n"
    with siege(besieged), contextlib.ExitStack() as stack:
        half: list[socket.socket] = []
        for _ in range(30):
            half.append(stack.enter_context(connect(besieged)))
            half[-1].settimeout(1.0)
            with contextlib.suppress(OSError):
                half[-1].sendall(begin + b"[" + b" " * 100_000)
        statuses = [_status(each) for each in half]
        assert statuses.count(503) >= 28, statuses
        assert set(statuses) <= {503, None}
        with connect(besieged) as single:  # one event finds room whatever batches are on their way
            tenant = besieged.tenant()
            body = json.dumps({"tenant": tenant, "type": "a", "data": "x" * 200_000}).encode()
            single.sendall(KEYED + b"connection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
            assert answer(single).split()[1] == b"202"


def _status(connection: socket.socket) -> int | None:
    try:
        return int(connection.recv(4_096).split()[1])
    except (TimeoutError, OSError, IndexError):
        return None


@pytest.mark.parametrize("begin", [b"", b"GET / HTTP/1.1\r\nx-", b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"])
def test_more_callers_than_there_is_room_for_displace_each_other(besieged: Shop, begin: bytes) -> None:
    with siege(besieged) as neighbour, contextlib.ExitStack() as stack:
        for number in range(2 * CONNECTIONS):
            if number % (CONNECTIONS // 4) == 0:
                neighbour.is_answered_again()
            connection = stack.enter_context(connect(besieged))
            with contextlib.suppress(OSError):
                connection.sendall(begin)
        assert descriptors(besieged) < CONNECTIONS + 100
        fresh = Caller(besieged.server.port, KEY)
        assert fresh.get("/healthz") == {"status": "ok"}
        fresh.close()
    until(lambda: '"reason": "evicted"' in besieged.log, "the log says who made room")


def descriptors(shop: Shop) -> int:
    return len(list(Path(f"/proc/{shop.server.pid}/fd").iterdir()))


def test_pipelined_floods_wait_in_their_own_kernel(besieged: Shop) -> None:
    with siege(besieged), contextlib.ExitStack() as stack:
        asks = b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 1_000
        for _ in range(20):  # who asks for much and reads nothing: its answers stop where its kernel is full
            connection = stack.enter_context(connect(besieged))
            connection.settimeout(0.5)
            with contextlib.suppress(TimeoutError, OSError):
                for _ in range(20):
                    connection.sendall(asks)
        time.sleep(1.0)


def test_a_head_that_does_not_end_has_ten_seconds_and_one_that_does_is_served(besieged: Shop) -> None:
    with connect(besieged) as slow, connect(besieged) as whole:
        began = time.monotonic()
        slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n")
        whole.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert whole.recv(4_096).startswith(b"HTTP/1.1 200")
        assert refused(answer(slow)) == (408, "request_timeout")
        assert 9 < time.monotonic() - began < 14


def test_a_body_that_stands_still_is_given_up(besieged: Shop) -> None:
    with connect(besieged) as slow:
        began = time.monotonic()
        slow.sendall(KEYED + b'content-length: 1000\r\n\r\n{"tenant":')
        assert refused(answer(slow)) == (408, "request_timeout")
        assert 4 < time.monotonic() - began < 10


TWO_WAYS: dict[str, tuple[bytes, int]] = {
    "length and chunks": (b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunks and length": (b"transfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}x", 400),
    "one length twice": (b"content-length: 2\r\ncontent-length: 2\r\n\r\n{}", 400),
    "a list of lengths": (b"content-length: 2, 2\r\n\r\n{}", 400),
    "a signed length": (b"content-length: +2\r\n\r\n{}", 400),
    "identity": (b"transfer-encoding: identity\r\ncontent-length: 2\r\n\r\n{}", 400),
    "another coding": (b"transfer-encoding: chunked, identity\r\n\r\n0\r\n\r\n", 400),
    "a hidden coding": (b"transfer-encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    "a space before the colon": (b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    "a folded line": (b"x: y\r\n transfer-encoding: chunked\r\n\r\n", 400),
    "a bare line feed": (b"x: y\ncontent-length: 2\r\n\r\n{}", 400),
    "a bare carriage return": (b"x: y\rcontent-length: 2\r\n\r\n{}", 400),
    "a bad chunk size": (b"transfer-encoding: chunked\r\n\r\n0x2\r\n{}\r\n0\r\n\r\n", 400),
    "a chunk with more": (b"transfer-encoding: chunked\r\n\r\n2\r\n{}}\r\n0\r\n\r\n", 400),
    "a chunk after a line feed": (b"transfer-encoding: chunked\r\n\r\n2\n{}\r\n0\r\n\r\n", 400),
    "two hosts": (b"host: y\r\n\r\n", 400),
}


@pytest.mark.parametrize("case", TWO_WAYS)
def test_what_two_servers_could_read_in_two_ways_is_refused_and_nothing_after_it_read(
    besieged: Shop, case: str
) -> None:
    rest, status = TWO_WAYS[case]
    hidden = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    with connect(besieged) as connection:
        connection.sendall(KEYED + rest + hidden)
        connection.shutdown(socket.SHUT_WR)
        assert refused(answer(connection)) == (status, "bad_request")


def test_other_protocols_are_told_what_is_spoken_here(besieged: Shop) -> None:
    def said(raw: bytes) -> bytes:
        with connect(besieged) as connection:
            connection.sendall(raw)
            return answer(connection)

    assert refused(said(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")) == (505, "http_version")
    tls = said(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100)
    assert refused(tls) == (400, "bad_request") and b"http://" in tls
    assert said(b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 200")
    assert refused(said(b"GET /healthz HTTP/1.1\r\n\r\n")) == (400, "bad_request")  # without Host


@pytest.mark.parametrize(
    "target", [b"*", b"x:443", b"nonsense", b"http://x", b"//", b"/%00", b"/v1/events/%ff", b"/%2e%2e/"]
)
def test_odd_targets_are_not_found(besieged: Shop, target: bytes) -> None:
    for method in (b"GET", b"OPTIONS", b"CONNECT", b"POST", b"FROBNICATE"):
        with connect(besieged) as connection:
            key = f"authorization: Bearer {KEY}\r\n".encode()
            connection.sendall(
                method + b" " + target + b" HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" + key + b"\r\n"
            )
            assert int(answer(connection).split()[1]) in (404, 405)


def test_two_keys_are_none(besieged: Shop) -> None:
    besieged.api.close()
    ask: Callable[[str, str], int] = lambda method, path: (  # noqa: E731
        besieged.api.ask(method, path, {} if method == "POST" else None, headers=[("Authorization", f"Bearer {KEY}")]).status
    )  # fmt: skip
    for method, path in (("POST", "/v1/events"), ("POST", "/v1/events/batch"), ("GET", "/v1/tenants"), ("GET", "/metrics")):  # fmt: skip
        assert ask(method, path) == 401, path


def test_the_metrics_say_what_callers_take(besieged: Shop) -> None:
    besieged.api.close()
    with connect(besieged) as connection:
        connection.sendall(b"\x00")
        answer(connection)
    text = besieged.api.ask("GET", "/metrics").body.decode()
    assert f"surehook_http_allowed_connections {CONNECTIONS:.1f}" in text
    assert f"surehook_http_allowed_body_bytes {16 * MIB:.1f}" in text or "1.6777216e+07" in text
    assert 'surehook_http_refused_total{reason="bad_request"}' in text
