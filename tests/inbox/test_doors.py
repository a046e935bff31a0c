"""The ASGI and WSGI doors: bounds, methods, handshakes; and what happens when too much waits."""

from __future__ import annotations

import asyncio
import io
import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from hypothesis import given, settings
from hypothesis import strategies as st

from surehook.core.errors import Overloaded, SettingsError
from surehook.core.limits import LINGER_BYTES
from surehook.inbox import AsyncInbox, Inbox, asgi, group_commit, sources
from surehook.inbox.sql import ddl
from surehook.ports.inbox import Contended, StoreUnavailable
from surehook.verify import sign
from tests.budget import examples
from tests.inbox.house import NOW, SECRET, Clock, call, message, partner

BODY = b'{"type":"document.signed"}'


@pytest.fixture
def inbox(tmp_path: Path):
    made = Inbox(f"sqlite:///{tmp_path / 'inbox.db'}", [partner(body_bytes=1_000)], clock=Clock())
    made.create_tables()
    yield made
    made.close()


def headers(body: bytes = BODY, **more: str) -> list[tuple[bytes, bytes]]:
    signed = sign(SECRET, "evt_1", body, timestamp=NOW // 1000)
    return [(name.encode(), value.encode()) for name, value in (signed | more).items()]


def asked(
    app: Any, parts: list[bytes], *, method="POST", path="/partner", given=None, root="", hangs=False
) -> Any:
    """Status, headers and body of the answer to one request whose body comes in parts."""
    said: list[Any] = []
    line = iter(parts)

    async def receive():
        part = next(line, None)
        if part is None:
            if hangs:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": hangs or part is not parts[-1]}

    async def send(message):
        said.append(message)

    scope = {
        "type": "http", "method": method, "path": root + path, "root_path": root, "query_string": b"",
        "headers": headers() if given is None else given, "client": ("127.0.0.1", 1), "scheme": "http",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    if not said:
        return None
    return said[0]["status"], {k.decode(): v.decode() for k, v in said[0]["headers"]}, said[1]["body"]


def code(answer):
    return json.loads(answer[2])["code"]


def test_a_body_in_parts_under_a_mount_is_taken(inbox):
    assert asked(inbox.asgi(), [BODY[:5], BODY[5:9], BODY[9:]], root="/hooks")[0] == 200


async def behind(scope, receive, send):
    await send({"type": "http.response.start", "status": 299, "headers": [(b"at", scope["path"].encode())]})
    await send({"type": "http.response.body", "body": scope["root_path"].encode()})


@pytest.mark.parametrize("root", ["", "/shop"])
def test_in_front_of_an_application_it_takes_what_is_under_its_path_alone(inbox, root):
    front = inbox.before(behind, "/hooks")
    assert asked(front, [BODY], path="/hooks/partner", root=root)[0] == 200
    assert code(asked(front, [BODY], path="/hooks/nobody", root=root)) == "unknown_source"
    for path in ("/", "/hooksmith/partner", "/api/hooks/partner", "/hook"):
        assert asked(front, [BODY], path=path, root=root) == (299, {"at": root + path}, root.encode())


def test_in_front_of_an_application_every_other_scope_is_the_applications(inbox):
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    for kind in ("lifespan", "websocket"):
        asyncio.run(inbox.before(app)({"type": kind, "path": "/hooks/partner"}, None, None))
    assert seen == ["lifespan", "websocket"]


@pytest.mark.parametrize("path", ["", "/", "hooks", "/hooks/", "/a?b", "//a"])
def test_a_path_in_front_is_a_path(inbox, path):
    with pytest.raises(SettingsError):
        inbox.before(behind, path)


@pytest.mark.parametrize(
    ("parts", "given", "status", "word"),
    [
        ([b"x" * 600, b"y" * 600], None, 413, "too_large"),  # no length was said
        ([b""], headers(**{"content-length": "1001"}), 413, "too_large"),  # not read at all
        ([BODY], headers(**{"content-encoding": "gzip"}), 415, "unsupported_encoding"),
        ([b""], headers(b""), 400, "no_body"),
        ([BODY + b" "], None, 401, "bad_signature"),
        ([BODY], [(b"x-%d" % n, b"v") for n in range(200)], 431, "headers_too_large"),
        ([BODY], [(b"x", b"v" * 40_000)], 431, "headers_too_large"),
    ],
)
def test_a_refusal_is_problem_json(inbox, parts, given, status, word):
    answer = asked(inbox.asgi(), parts, given=given)
    assert (answer[0], answer[1]["content-type"], code(answer)) == (status, "application/problem+json", word)
    assert json.loads(answer[2])["retryable"] is False
    assert inbox.counts() == {}


def test_a_body_that_trickles_is_cut_off_at_its_deadline(inbox):
    answer = asked(inbox.asgi(body_s=0.05), [BODY[:5]], hangs=True)
    assert (answer[0], code(answer), answer[1]["connection"]) == (408, "body_too_slow", "close")


async def sent_before_read(app: Any, head: bytes) -> bytes:
    """What a server answers to one that sends its head and 2 MB, and then reads to the end."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", http="h11"))
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.transport.set_write_buffer_limits(0)
        writer.write(head + b"host: x\r\ncontent-length: 2000000\r\n\r\n" + b"x" * 2_000_000)
        await writer.drain()
        answer = await reader.read()
        writer.close()
        server.should_exit = True
        await serving
    return answer


@pytest.mark.parametrize(("path", "status"), [(b"/partner", b"413"), (b"/nobody", b"404")])
def test_a_refusal_reaches_a_sender_that_sends_all_before_it_reads(inbox, path, status):
    answer = asyncio.run(sent_before_read(inbox.asgi(), b"POST %b HTTP/1.1\r\n" % path))
    assert answer.startswith(b"HTTP/1.1 " + status) and answer.endswith(b"}")


def test_a_refused_body_without_an_end_is_read_up_to_a_bound(inbox):
    pieces = iter([b"x" * 2**20] * (LINGER_BYTES // 2**20 + 2))

    async def receive():
        return {"type": "http.request", "body": next(pieces), "more_body": True}

    said = []

    async def send(message):
        said.append(message.get("more_body"))

    scope = {"type": "http", "method": "POST", "path": "/nobody", "headers": headers()}
    asyncio.run(inbox.asgi()(scope, receive, send))
    assert said == [None, True, None] and len(list(pieces)) == 1


def slowly(app: Any, parts: list[Any]) -> Any:
    """The answer to a body whose parts keep the application waiting; one that is an error is raised in its place."""
    said: list[Any] = []
    line = iter(parts)

    async def receive():
        for _ in range(3):
            await asyncio.sleep(0)
        part = next(line)
        if isinstance(part, BaseException):
            raise part
        return {"type": "http.request", "body": part, "more_body": part is not parts[-1]}

    async def send(message):
        said.append(message)

    scope = {
        "type": "http", "method": "POST", "path": "/partner", "root_path": "", "query_string": b"",
        "headers": headers(), "client": ("127.0.0.1", 1), "scheme": "http",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return said[0]["status"]


def test_a_body_may_come_later_than_its_head(inbox):
    assert slowly(inbox.asgi(), [BODY[:5], BODY[5:9], BODY[9:]]) == 200


@pytest.mark.parametrize("error", [asyncio.CancelledError("stopped"), OSError("the server is broken")])
def test_what_happens_while_a_body_is_waited_for_is_not_taken_for_slowness(inbox, error):
    with pytest.raises(type(error)):
        slowly(inbox.asgi(), [BODY[:5], error])


def test_a_sender_that_hangs_up_is_not_answered(inbox):
    assert asked(inbox.asgi(), [BODY[:5], BODY[5:]][:0]) is None


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "OPTIONS", "DELETE"])
def test_other_methods_are_405_and_say_what_is_allowed(inbox, method):
    answer = asked(inbox.asgi(), [b""], method=method)
    assert (answer[0], answer[1]["allow"]) == (405, "POST")


def test_a_caller_from_elsewhere_is_refused_before_its_body_is_read(tmp_path):
    inbox = Inbox(f"sqlite:///{tmp_path / 'i.db'}", [partner(networks=["192.0.2.0/24"])], clock=Clock())
    answer = asked(inbox.asgi(), [])
    assert (answer[0], code(answer)) == (403, "caller_refused")
    inbox.close()


def test_handshakes_are_answered_and_are_no_events(tmp_path):
    meta = sources.named("meta", secret="secret", known={"verify_token": "agreed"})
    inbox = Inbox(f"sqlite:///{tmp_path / 'i.db'}", [meta], clock=Clock())
    inbox.create_tables()
    scope = {
        "REQUEST_METHOD": "GET", "PATH_INFO": "/meta", "REMOTE_ADDR": "127.0.0.1", "wsgi.input": io.BytesIO(),
        "QUERY_STRING": "hub.mode=subscribe&hub.verify_token=agreed&hub.challenge=1158201444",
    }  # fmt: skip
    said: list[Any] = []
    body = b"".join(inbox.wsgi()(scope, lambda *words: said.append(words)))
    assert (said[0][0], body) == ("200 OK", b"1158201444")
    assert inbox.counts() == {}
    inbox.close()


@pytest.mark.parametrize(
    ("length", "body", "status"),
    [(str(len(BODY)), BODY, "200"), ("", BODY, "400"), ("100", BODY, "408"), ("2000", b"", "413")],
)
def test_wsgi_reads_what_was_announced_and_no_more(inbox, length, body, status):
    environ = {"HTTP_" + name.decode().upper().replace("-", "_"): value.decode() for name, value in headers()}
    environ |= {
        "REQUEST_METHOD": "POST", "PATH_INFO": "/partner", "REMOTE_ADDR": "127.0.0.1", "CONTENT_LENGTH": length,
        "wsgi.input": io.BytesIO(body + (b"more" if status == "200" else b"")),
    }  # fmt: skip
    said: list[Any] = []
    b"".join(inbox.wsgi()(environ, lambda *words: said.append(words)))
    assert said[0][0].startswith(status)


def test_a_full_line_is_503_and_asks_for_another_try(inbox, tmp_path):
    waiting = group_commit._PendingRequests()
    taken = inbox.receiver.judge(call(*message("evt_1"), at=NOW), now=NOW)
    for _ in range(group_commit.LINE_REQUESTS):
        waiting.add(group_commit.Ticket(taken.request))
    with pytest.raises(Overloaded):
        waiting.add(group_commit.Ticket(taken.request))
    assert (
        sum(1 for _ in iter(lambda: len(waiting.take()) and waiting, False))
        >= group_commit.LINE_REQUESTS // group_commit.BATCH_EVENTS
    )


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 3)), max_size=60), st.integers(0, 4))
def test_a_batch_says_of_every_request_what_one_by_one_would_have_said(picks, cut):
    """Equal ids with equal bodies are duplicates, with others conflicts, whatever lies in one transaction."""
    inbox = Inbox("sqlite://", [partner()], clock=Clock())
    inbox.create_tables()
    takens = [inbox.receiver.judge(call(*message(f"evt_{n}", n=kind), at=NOW), now=NOW) for n, kind in picks]
    first: dict[int, int] = {}
    expected = []
    for n, kind in picks:
        expected.append("new" if n not in first else "duplicate" if first[n] == kind else "conflict")
        first.setdefault(n, kind)
    found, size = [], max(1, len(takens) // (cut + 1))
    for at in range(0, len(takens), size):
        tickets = [group_commit.Ticket(taken.request) for taken in takens[at : at + size]]
        inbox._group_commit._write(tickets)
        found += [ticket.result()[0].kind for ticket in tickets]
    assert found == expected
    assert sum(one.get("accepted", 0) for one in inbox.counts().values()) == len(first)
    inbox.close()


def test_one_that_cannot_be_stored_spoils_nothing_for_those_beside_it(inbox):
    from msgspec import structs

    good, bad = (inbox.receiver.judge(call(*message(f"evt_{n}"), at=NOW), now=NOW).request for n in (1, 2))
    tickets = [group_commit.Ticket(good), group_commit.Ticket(structs.replace(bad, headers=None))]
    inbox._group_commit._write(tickets)
    assert tickets[0].result()[0].kind == "new"
    assert tickets[1].error is not None


def test_a_database_that_is_away_is_told_to_all_who_wait_after_one_try(inbox):
    tries = []

    class Away:
        def run(self, work):
            tries.append(work)
            raise StoreUnavailable("away")

    tickets = [
        group_commit.Ticket(inbox.receiver.judge(call(*message(f"evt_{n}"), at=NOW), now=NOW).request)
        for n in range(5)
    ]
    group_commit.GroupCommit(Away())._write(tickets)  # type: ignore[arg-type]
    assert len(tries) == 1
    assert all(isinstance(ticket.error, StoreUnavailable) for ticket in tickets)


def test_a_batch_that_lost_a_race_for_locks_is_written_again_and_not_for_ever(inbox):
    tries = []

    class Busy:
        def __init__(self, losses):
            self.losses = losses

        def run(self, work):
            tries.append(work)
            if len(tries) <= self.losses:
                raise Contended("deadlock")
            return inbox.store.run(work)

    for losses, stored in ((group_commit.CLASHES, True), (group_commit.CLASHES + 1, False)):
        tries.clear()
        ticket = group_commit.Ticket(
            inbox.receiver.judge(call(*message(f"evt_{losses}"), at=NOW), now=NOW).request
        )
        group_commit.GroupCommit(Busy(losses))._write([ticket])  # type: ignore[arg-type]
        assert (ticket.error is None) == stored
        assert len(tries) == group_commit.CLASHES + 1


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql", "mysql", "mariadb"])
def test_the_printed_tables_are_those_that_are_made(dialect):
    script = ddl.script(dialect)
    for name in ("requests", "events", "runs", "conflicts", "documents", "steps"):
        assert f"CREATE TABLE surehook_inbox_{name}" in script
    assert "surehook_inbox_events_once UNIQUE (source, tenant, event_id)" in script


def test_the_printed_tables_work(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "inbox.db") as connection:
        connection.executescript(ddl.script("sqlite"))
    connection.close()
    inbox = Inbox(f"sqlite:///{tmp_path / 'inbox.db'}", [partner()], clock=Clock())
    assert inbox.receive(call(*message("evt_1"), at=NOW)).status == 200
    inbox.close()


def test_mistakes_are_told_when_they_are_made():
    inbox = Inbox("sqlite://", [partner()])
    with pytest.raises(SettingsError):
        inbox.add(partner())
    with pytest.raises(SettingsError):
        inbox.on("partner", "a*b")(print)
    with pytest.raises(SettingsError):
        inbox.replay(reason="everything")

    async def waiting(event, tx): ...

    with pytest.raises(SettingsError):
        inbox.on("partner")(waiting)
    with pytest.raises(SettingsError):
        inbox.prune(bodies_days=90, events_days=30)
    with pytest.raises(SettingsError):
        Inbox("oracle://x")
    with pytest.raises(SettingsError):
        AsyncInbox(inbox.store.engine)  # type: ignore[arg-type]
    inbox.close()


def test_a_tenant_that_the_signature_does_not_cover_is_refused():
    with pytest.raises(sources.SourceError):
        partner(tenant=sources.Header("X-Tenant"))


def test_sources_need_no_sqlalchemy():
    code = "import sys; from surehook.inbox import sources, workflow; assert 'sqlalchemy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# -- many large bodies at once


def asked_at_once(app, bodies, *, length=None):
    """The statuses and headers of requests that all send this part of their body, and then nothing, until the last has."""

    async def go():
        released = asyncio.Event()
        answers = []

        async def one(part):
            sent = iter([{"type": "http.request", "body": part, "more_body": True}])

            async def receive():
                for first in sent:
                    return first
                await released.wait()
                return {"type": "http.disconnect"}

            async def send(message):
                if message["type"] == "http.response.start":
                    answers.append((message["status"], dict(message["headers"])))

            given = [] if length is None else [(b"content-length", str(length).encode())]
            scope = {
                "type": "http",
                "method": "POST",
                "path": "/partner",
                "query_string": b"",
                "headers": given,
            }
            await app(scope, receive, send)

        tasks = [asyncio.create_task(one(part)) for part in bodies]
        for _ in range(20):
            await asyncio.sleep(0)
        released.set()
        await asyncio.gather(*tasks)
        return answers

    return asyncio.run(go())


@pytest.mark.parametrize("length", [None, 400_000], ids=["unsaid", "said"])
def test_large_bodies_of_strangers_have_one_budget_together(inbox, monkeypatch, length):
    monkeypatch.setattr(asgi, "READING_BYTES", 1_000_000)
    inbox.receiver.sources["partner"] = partner(body_bytes=500_000)
    app = inbox.asgi()
    large = bytes(400_000)
    answers = asked_at_once(app, [large] * 5, length=length)
    assert [status for status, _ in answers] == [503] * 3
    assert all(int(given[b"retry-after"]) > 0 for _, given in answers)
    assert asked_at_once(app, [large] * 2, length=length) == [], "what was read is forgotten"


def test_small_bodies_come_whatever_others_send(inbox, monkeypatch):
    monkeypatch.setattr(asgi, "READING_BYTES", 1_000_000)
    inbox.receiver.sources["partner"] = partner(body_bytes=2_000_000)
    assert asked_at_once(inbox.asgi(), [bytes(1_000_000), *[bytes(60_000)] * 30]) == []


def test_one_that_is_alone_may_be_as_large_as_its_source_allows(inbox, monkeypatch):
    monkeypatch.setattr(asgi, "READING_BYTES", 100_000)
    inbox.receiver.sources["partner"] = partner(body_bytes=500_000)
    assert asked_at_once(inbox.asgi(), [bytes(400_000)], length=400_000) == []
