"""TLS sessions: another connection to the same peer goes on from the last one, within strict bounds."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import uvloop

from surehook.core.model import EndpointTls
from surehook.wire import sessions
from tests.wire.certificates import Authority
from tests.wire.posting import client, post
from tests.wire.receivers import Hear, Receiver, Reset, Say

CLOSES = (Hear(), Say(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"))
RUNS = {"asyncio": asyncio.run, "uvloop": uvloop.run}
NAMES = {"hooks.company.com": ("127.0.0.1",), "other.company.com": ("127.0.0.1",)}
VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("sessions"))


class Clock:
    """A boot clock that a test moves."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def boot(self) -> float:
        return asyncio.get_running_loop().time() + self.ahead


def play(receiver, server, *steps, loop="asyncio", ca_file, clock=None):
    """Attempts in order; a step is a host, or (host, request), or a number of seconds that pass. Whether each
    handshake was resumed, as the server counted it, and the failures."""
    met = []

    async def case():
        async with receiver.running(ssl=server):
            own = Clock()
            wire = client(names=NAMES, ca_file=ca_file, clock=own)
            failures = []
            for step in steps:
                if isinstance(step, float):
                    own.ahead += step
                    continue
                host, request = step if isinstance(step, tuple) else (step, {})
                before = server.session_stats()["hits"]
                answer = await post(wire, f"https://{host}:{receiver.port}/", **request)
                failures.append(answer.failure)
                met.append(server.session_stats()["hits"] > before)
            await wire.close()
            return failures, len(wire.shared.sessions)

    failures, kept = RUNS[loop](case())
    return met, failures, kept


def serving(authority, *hosts, version=ssl.TLSVersion.TLSv1_3):
    server = authority.server(*hosts)
    server.maximum_version = version
    return server


@pytest.mark.parametrize("loop", RUNS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_second_connection_goes_on_from_the_first(authority, loop, version):
    server = serving(authority, "hooks.company.com", version=version)
    met, failures, kept = play(
        Receiver(CLOSES), server, *["hooks.company.com"] * 3, loop=loop, ca_file=authority.file
    )
    assert (met, failures, kept) == ([False, True, True], [None] * 3, 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_session_of_one_name_never_vouches_for_another(authority, version):
    """Same address, same port, same server: the certificate does not cover the other name, and that is found."""
    server = serving(authority, "hooks.company.com", version=version)
    met, failures, _ = play(
        Receiver(CLOSES), server, "hooks.company.com", "other.company.com", ca_file=authority.file
    )
    assert (met[1], failures) == (False, [None, "tls_name"])


def test_a_session_is_not_used_across_tenants_or_tls_settings(authority):
    own = EndpointTls(ca=Path(authority.file).read_text())
    host = "hooks.company.com"
    met, failures, kept = play(
        Receiver(CLOSES), serving(authority, host), host, (host, {"tenant": "beta"}), (host, {"tls": own}),
        (host, {"tls": own, "tenant": "beta"}), (host, {"tls": own}), host, ca_file=authority.file,
    )  # fmt: skip
    assert (met, failures, kept) == ([False, False, False, False, True, True], [None] * 6, 4)


def test_the_certificate_is_looked_at_again_after_ten_minutes_however_often_it_was_resumed(authority):
    host = "hooks.company.com"
    almost = sessions.VERIFIED_S * 0.6
    met, _, _ = play(
        Receiver(CLOSES), serving(authority, host), host, almost, host, almost, host, host,
        ca_file=authority.file,
    )  # fmt: skip
    assert met == [False, True, False, True]


def test_after_a_failure_the_next_handshake_is_a_full_one(authority):
    host = "hooks.company.com"
    receiver = Receiver(CLOSES, (Hear(), Reset()), CLOSES)
    met, failures, _ = play(receiver, serving(authority, host), host, host, host, ca_file=authority.file)
    assert met == [False, True, False] and failures[1] in ("eof", "reset")


def test_a_server_that_forgot_the_session_gets_a_full_handshake(authority):
    """Its restart changes the keys of its tickets; the attempt itself goes well."""
    host = "hooks.company.com"

    async def case():
        wire = client(names=NAMES, ca_file=authority.file)
        answers, port = [], 0
        for _ in range(2):
            receiver, server = Receiver(CLOSES), serving(authority, host)
            async with receiver.running(ssl=server, port=port):
                port = receiver.port
                answers.append(await post(wire, f"https://{host}:{port}/"))
                answers.append(server.session_stats()["hits"])
        await wire.close()
        return answers

    first, none, second, still_none = asyncio.run(case())
    assert (first.status, none, second.status, still_none) == (200, 0, 200, 0)


def test_sessions_are_bounded(authority):
    kept = sessions.SessionCache(lambda: 0.0)
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    class Session:
        has_ticket = True

    class Secured:
        session, context = Session(), found

    class Transport:
        def get_extra_info(self, name):
            return Secured() if name == "ssl_object" else None

    class Closing:
        transport, verified_at = Transport(), 0.0

        def __init__(self, number):
            self.session_key = (number,)

    for number in range(sessions.KEPT + 9):
        kept.keep(Closing(number))
    assert len(kept) == sessions.KEPT
    assert kept.find((8,), found) is None and kept.find((9,), found) is not None
    assert kept.find((10,), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)) is None
