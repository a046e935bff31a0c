"""Bodies that come slowly or without a length, on raw sockets against real WSGI servers."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler
from wsgiref.simple_server import make_server as wsgiref_server

import pytest
from werkzeug.serving import WSGIRequestHandler as WerkzeugHandler
from werkzeug.serving import make_server as werkzeug_server

from surehook.inbox import Inbox
from surehook.verify import sign
from tests.inbox.house import NOW, SECRET, Clock, partner

BODY = b'{"type":"document.signed"}'
MOST = 4_000  # bytes of a body
PATIENCE_S = 10.0


class Watched(Clock):
    """A clock that says when somebody has looked at it."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = threading.Semaphore(0)

    def boot(self) -> float:
        at = super().boot()
        self.looked.release()
        return at


class Quiet(WSGIRequestHandler):
    def log_message(self, *words: Any) -> None: ...


class QuietWerkzeug(WerkzeugHandler):
    def log(self, *words: Any) -> None: ...


def wsgiref(app: Any) -> Any:
    return wsgiref_server("127.0.0.1", 0, app, handler_class=Quiet)


def werkzeug(app: Any) -> Any:
    return werkzeug_server("127.0.0.1", 0, app, request_handler=QuietWerkzeug)


@contextmanager
def serving(make: Callable[[Any], Any], inbox: Inbox) -> Iterator[socket.socket]:
    """A server with the inbox, and a connection to it."""
    server = make(inbox.wsgi())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with closing(socket.create_connection(server.server_address[:2], timeout=PATIENCE_S)) as wire:
            yield wire
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def inbox(tmp_path) -> Iterator[Inbox]:
    made = Inbox(f"sqlite:///{tmp_path / 'inbox.db'}", [partner(body_bytes=MOST)], clock=Watched())
    made.create_tables()
    yield made
    made.close()


def head(**more: Any) -> bytes:
    signed = sign(SECRET, "evt_1", BODY, timestamp=NOW // 1000)
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in (signed | more).items()]
    return "\r\n".join(["POST /partner HTTP/1.1", "host: receiver", *lines, "", ""]).encode()


def answer(wire: socket.socket) -> tuple[int, str | None]:
    """Status and code."""
    with wire.makefile("rb") as file:
        status = int(file.readline().split()[1])
        text = file.read().partition(b"\r\n\r\n")[2]
    return status, json.loads(text)["code"] if text else None


SERVERS = pytest.mark.parametrize("server", [wsgiref, werkzeug])


@SERVERS
def test_a_body_that_comes_in_drops_within_its_deadline_is_taken(server, inbox):
    with serving(server, inbox) as wire:
        wire.sendall(head(content_length=len(BODY)))
        for place in range(len(BODY)):
            wire.sendall(BODY[place : place + 1])
        assert answer(wire) == (200, None)


@SERVERS
def test_a_body_that_drips_is_cut_off_at_its_deadline(server, inbox):
    with serving(server, inbox) as wire:
        wire.sendall(head(content_length=1_000) + b"{")
        assert inbox.clock.looked.acquire(timeout=PATIENCE_S)  # its time has begun
        assert inbox.clock.looked.acquire(timeout=PATIENCE_S)  # the first byte was read
        inbox.clock.passes(11)
        wire.sendall(b'"')  # one byte of 999, and no end
        assert answer(wire) == (408, "body_too_slow")
    assert inbox.counts() == {}


@SERVERS
def test_a_sender_that_hangs_up_leaves_nothing(server, inbox):
    with serving(server, inbox) as wire:
        wire.sendall(head(content_length=1_000) + BODY)
        wire.shutdown(socket.SHUT_WR)
        assert answer(wire) == (408, "body_too_slow")
    assert inbox.counts() == {}


@SERVERS
def test_a_body_announced_too_large_is_refused_before_any_of_it_comes(server, inbox):
    with serving(server, inbox) as wire:
        wire.sendall(head(content_length=MOST + 1))
        assert answer(wire) == (413, "too_large")


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def test_a_chunked_body_is_taken_where_the_server_knows_its_end(inbox):
    with serving(werkzeug, inbox) as wire:
        wire.sendall(head(transfer_encoding="chunked") + chunk(BODY[:7]) + chunk(BODY[7:]) + chunk(b""))
        assert answer(wire) == (200, None)


def test_a_chunked_body_is_refused_where_nobody_knows_its_end(inbox):
    with serving(wsgiref, inbox) as wire:
        wire.sendall(head(transfer_encoding="chunked") + chunk(BODY) + chunk(b""))
        assert answer(wire) == (400, "no_body")


def test_a_chunked_body_without_end_is_refused_at_the_bound(inbox):
    with serving(werkzeug, inbox) as wire:
        wire.sendall(head(transfer_encoding="chunked") + chunk(b"x" * (MOST + 1)))
        assert answer(wire) == (413, "too_large")
    assert inbox.counts() == {}
