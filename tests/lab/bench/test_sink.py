"""The receiver answers as its path says and counts what came."""

import socket
import time

import pytest

from lab.bench.framing import content_length, header
from lab.bench.stage import receiver


@pytest.fixture(scope="module")
def process():
    with receiver() as sink:
        yield sink


@pytest.fixture
def sink(process):
    process.reset()
    return process


def post(sink, path, delivery, *, event="evt_1", patience=5.0, spelling="webhook-delivery-id"):
    """One request on a connection of its own; the answer, or None where none came in time."""
    with socket.create_connection(("127.0.0.1", sink.port), timeout=patience) as line:
        body = b"x" * 600
        head = f"POST {path} HTTP/1.1\r\nhost: h\r\nwebhook-id: {event}\r\n{spelling}: {delivery}\r\n"
        line.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        try:
            return line.recv(4096)
        except TimeoutError:
            return None


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/ok", 200),
        ("/ok/3?a=b", 200),
        ("/status/503", 503),
        ("/status/204", 204),
        ("/flaky/0", 200),
        ("/flaky/1", 500),
        ("/x", 404),
    ],
)
def test_a_path_says_the_answer(sink, path, status):
    assert int(post(sink, path, "dlv_1")[9:12]) == status
    assert sink.count().answered == (200 <= status < 300)


def test_a_delay_is_kept(sink):
    began = time.monotonic()
    assert post(sink, "/d/80", "dlv_1")[9:12] == b"200"
    assert time.monotonic() - began >= 0.079


def test_a_hanging_path_never_answers_and_counts_the_request(sink):
    assert post(sink, "/hang/1", "dlv_1", patience=0.05) is None
    count = sink.count()
    assert (count.requests, count.answered, count.by_path["/hang/1"]) == (1, 0, 1)


def test_a_sender_that_left_before_the_answer_was_not_answered(sink):
    assert post(sink, "/d/30", "dlv_1", patience=0.005) is None
    assert post(sink, "/d/60", "dlv_2") is not None  # by now the first answer would have been written
    assert sink.count().answered == 1


def test_once_fails_the_first_request_of_each_delivery(sink):
    statuses = [post(sink, "/once/500", name)[9:12] for name in ("dlv_1", "dlv_1", "dlv_2")]
    assert statuses == [b"500", b"200", b"500"]


def test_late_leads_everybody_to_the_set_instant(sink):
    sink.due(time.monotonic_ns() + 5_000_000_000)
    answer = post(sink, "/late", "dlv_1")
    assert answer[9:12] == b"503"
    assert header(answer, b"retry-after") == b"5"
    sink.due(time.monotonic_ns())
    assert post(sink, "/late", "dlv_1")[9:12] == b"200"


def test_a_request_after_a_2xx_is_a_duplicate_and_one_after_a_failure_is_not(sink):
    for name, path in [("dlv_1", "/ok"), ("dlv_1", "/ok"), ("dlv_2", "/status/500"), ("dlv_2", "/ok")]:
        post(sink, path, name)
    assert sink.count().duplicated == 1
    assert sink.report().duplicated == 1


def test_the_report_holds_each_arrival_in_order_on_the_machines_clock(sink):
    before = time.monotonic_ns()
    post(sink, "/ok", "dlv_1", event="evt_a", spelling="Webhook-Delivery-Id")
    post(sink, "/status/500", "dlv_2", event="evt_b")
    report = sink.report()
    deliveries, events, at, path = report.rows()
    assert (deliveries, events) == ([b"dlv_1", b"dlv_2"], [b"evt_a", b"evt_b"])
    assert before < at[0] < at[1] < time.monotonic_ns()
    assert [report.paths[number] for number in path] == ["/ok", "/status/500"]
    assert report.without_success() == {b"dlv_2"}


def test_a_reset_forgets_all_arrivals(sink):
    post(sink, "/ok", "dlv_1")
    sink.reset()
    assert sink.count().requests == 0
    assert sink.report().rows()[0] == []


def test_a_request_in_pieces_is_one_request(sink):
    with socket.create_connection(("127.0.0.1", sink.port), timeout=5) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in (
            b"POST /ok HTTP/1.1\r\nwebhook-delivery-id: dlv_",
            b"1\r\ncontent-length: 4\r\n\r\nab",
            b"cd",
        ):
            line.sendall(piece)
        assert line.recv(100)[9:12] == b"200"
    assert sink.count().requests == 1


def test_a_message_without_a_length_is_refused_not_guessed():
    assert content_length(b"HTTP/1.1 204 No Content\r\nserver: x") == 0
    with pytest.raises(ValueError, match="chunked"):
        content_length(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked")


def test_open_connections_are_counted(sink):
    assert sink.count().connections == 1
    with socket.create_connection(("127.0.0.1", sink.port), timeout=5) as line:
        line.sendall(b"GET /none HTTP/1.1\r\n\r\n")
        assert line.recv(4096)
        assert sink.count().connections == 2
    until = time.monotonic() + 5
    while sink.count().connections > 1:
        assert time.monotonic() < until
