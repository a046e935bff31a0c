"""`surehook listen` as a process of its own: verify, print, misbehave, end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from msgspec.json import decode

from surehook.cli.errors import CommandError
from surehook.cli.listener import split_place
from surehook.client.calls import ApiCall, ServerUrl
from surehook.client.errors import Unreachable
from surehook.client.http1 import HttpAnswer
from surehook.client.sockets import Sockets
from surehook.core.model import FIRST
from surehook.core.outcome import classify, succeeds
from surehook.core.policy import parse_policy
from surehook.core.profiles import PROFILES
from surehook.verify import sign
from tests.cli.conftest import Run
from tests.cli.fake_api import ENDPOINT, KEY, endpoint, fake_api
from tests.client.stand_in import answer

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
BODY = b'{"id":"evt_1","type":"document.signed","data":{"n":1}}'


class Listening:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stderr is not None
        self.first = process.stderr.readline().decode()
        self.url = self.first.split()[2]

    def post(self, body: bytes = BODY, *, path: str | None = None, **headers: str) -> HttpAnswer:
        place = ServerUrl.of(self.url)
        wire = Sockets(ServerUrl(place.url, False, place.host, place.port, ""), timeout_s=5)
        signed = sign(SECRET, "evt_1", BODY) | {"host": "x", "connection": "close"} | headers
        try:
            return wire.exchange(ApiCall("POST", path or place.prefix or "/", body), signed)
        finally:
            wire.close()

    def end(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=10)
        return self.process.returncode, out.decode(), err.decode()


@contextmanager
def listening(*args: str, env: dict[str, str] | None = None) -> Iterator[Listening]:
    command = [sys.executable, "-m", "surehook", "listen", *args]
    # Unbuffered, so that reading the first line leaves the rest for `communicate`.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, bufsize=0)
    try:
        yield Listening(process)
    finally:
        process.kill()
        process.communicate()


def test_it_verifies_prints_and_ends_cleanly() -> None:
    with listening("0/hooks", "--secret", SECRET) as it:
        good, bad, elsewhere = it.post(), it.post(BODY + b" "), it.post(path="/other")
        code, out, err = it.end()
    assert (good.status, bad.status, elsewhere.status) == (200, 401, 404)
    assert code == 0
    lines = [line for line in out.splitlines() if "evt_1" in line]
    assert ["verified" in lines[0], "bad_signature" in lines[1]] == [True, True]
    assert '"n": 1' in out
    assert err.endswith("3 received\n")
    assert "Traceback" not in err


def test_a_wrong_secret_is_answered_as_the_contract_asks_so_that_a_sender_waits_for_the_key() -> None:
    policy = parse_policy(None, PROFILES)
    with listening("0", "--secret", SECRET) as it:
        forged, bare = it.post(BODY + b" "), it.post(**{"webhook-signature": ""})
        it.end()
    for answered in (forged, bare):
        headers = "".join(f"{name}: {value}\r\n" for name, value in answered.headers.items()).encode()
        outcome = classify(
            policy=policy, success=succeeds(policy), lane=FIRST, probe=False, status=answered.status, failure=None,
            headers=headers, body=answered.body, now=0,
        )  # fmt: skip
        assert (outcome.key, outcome.terminal) == (True, False)


def test_a_request_without_headers_is_not_verified() -> None:
    with listening("0", "--secret", SECRET, "--json") as it:
        assert it.post(**{"webhook-signature": ""}).status == 401
        _, out, _ = it.end()
    assert decode(out)["verdict"] == "bad_signature"


def test_without_a_secret_it_says_that_nothing_is_checked() -> None:
    with listening("0", "--json", "--no-body") as it:
        assert it.post().status == 200
        _, out, err = it.end()
    assert decode(out)["verdict"] == "unchecked"
    assert decode(out)["event"]["type"] == "document.signed"
    assert "not verified" in err


@pytest.mark.parametrize(
    ("args", "status"),
    [(("--status", "503"), 503), (("--status", "204", "--delay", "50ms"), 204), (("--hang",), None)],
)
def test_it_behaves_as_told(args: tuple[str, ...], status: int | None) -> None:
    with listening("0", *args) as it:
        if status is None:
            place = ServerUrl.of(it.url)
            with pytest.raises(Unreachable):
                Sockets(place, timeout_s=0.2).exchange(ApiCall("POST", "/", BODY), {"host": "x"})
        else:
            assert it.post().status == status
        code, _, err = it.end()
    assert code == 0
    assert "behaves" in err


def test_it_registers_itself_and_goes_when_it_ends() -> None:
    import os

    values = {
        "POST /v1/endpoints": endpoint(secret=SECRET),
        f"DELETE /v1/endpoints/{ENDPOINT}": answer(204),
    }
    with fake_api(**values) as api:
        env = os.environ | {"SUREHOOK_URL": api.url, "SUREHOOK_API_KEY": KEY}
        with listening("0/in", "--create", "--tenant", "acme", "--events", "a.*", env=env) as it:
            assert it.post().status == 200
            code, out, _err = it.end()
        made = api._server.heard[0].json
    assert code == 0
    assert made["tenant"] == "acme"
    assert made["event_types"] == ["a.*"]
    assert made["url"] == it.url
    assert "verified" in out
    assert api.asked[-1] == f"DELETE /v1/endpoints/{ENDPOINT}"


@pytest.mark.parametrize(
    ("written", "place"),
    [("4000/hooks/a", (4000, "/hooks/a")), ("4000", (4000, "/")), ("/h", (4000, "/h")), ("0/", (0, "/"))],
)
def test_a_place_is_port_and_path(written: str, place: tuple[int, str]) -> None:
    assert split_place(written) == place


@pytest.mark.parametrize("written", ["http://x", "99999/a", "-1", "a/b"])
def test_a_wrong_place_is_a_usage_error(written: str) -> None:
    with pytest.raises(CommandError):
        split_place(written)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--secret", "short"), "--secret"),
        (("--delay", "long"), "is not a duration"),
        (("--flaky", "2"), "--flaky"),
        (("--create",), "which tenant?"),
    ],
)
def test_wrong_flags_are_explained(surehook: Run, args: tuple[str, ...], words: str) -> None:
    ran = surehook("listen", "0", *args)
    assert ran.code == 2
    assert words in ran.err


def test_a_taken_port_is_explained(surehook: Run) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = surehook("listen", str(taken.getsockname()[1]))
    assert ran.code == 2
    assert "is taken" in ran.err
    assert "surehook listen " in ran.err
    assert "--port" not in ran.err
