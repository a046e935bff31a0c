"""The commands against the real server: one story from an empty folder to a replayed dead letter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import decode

from surehook.host.ports import free_port
from tests.cli.test_listen import listening

pytestmark = pytest.mark.slow

SHORT = '{"schedule": {"fixed": [0.1, 0.1]}, "jitter": null, "breaker": null}'


class Shell:
    """A folder with a server in it, and `surehook` run there as a person would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SUREHOOK_")}
        self.env = clean | {"SUREHOOK_PORT": str(free_port()), "SUREHOOK_TENANT": "acme"}
        self.server: subprocess.Popen[bytes] | None = None
        self.banner = ""

    def serve(self, *flags: str) -> None:
        command = [sys.executable, "-m", "surehook", "serve", *flags]
        self.server = subprocess.Popen(
            command, cwd=self.folder, env=self.env, stderr=subprocess.PIPE, bufsize=0
        )
        assert self.server.stderr is not None
        while "docs" not in self.banner:
            text = self.server.stderr.readline().decode()
            assert text, self.banner
            self.banner += text

    def run(self, *args: str, data: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "surehook", *args]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            input=data or "",
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )

    def json(self, *args: str) -> Any:
        ran = self.run(*args, "--json")
        assert ran.stdout, ran.stderr
        return decode(ran.stdout)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        assert self.server is not None
        assert self.server.stderr is not None
        self.server.send_signal(number)
        self.banner += self.server.stderr.read().decode()
        code = self.server.wait(15)
        self.server.stderr.close()
        return code


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    if shell.server is not None and shell.server.poll() is None:
        shell.server.kill()
        shell.stop()


def test_from_an_empty_folder_to_a_replayed_dead_letter(shell: Shell) -> None:
    shell.env["SUREHOOK_API_KEY"] = "a-key-of-sixteen-chars"
    shell.serve("--dev")
    assert shell.json("tenants", "create", "Acme", "--id", "acme")["id"] == "acme"
    dead = f"http://127.0.0.1:{free_port()}/hooks"
    endpoint = shell.json("endpoints", "create", dead, "--events", "document.*", "--policy", SHORT)
    with listening("0/in", "--create", "--events", "document.signed", "--json", env=shell.env) as receiver:
        sent = shell.run("send", "document.signed", "-d", '{"n": 1.10}', "--key", "k", "--wait", "10s")
        assert sent.returncode == 7  # one of the two arrived
        again = shell.run("send", "document.signed", "-d", '{"n": 1.10}', "--key", "k")
        assert again.stdout == sent.stdout
        assert shell.run("send", "document.signed", "-d", '{"n": 2}', "--key", "k").returncode == 5
        code, out, _ = receiver.end()
    assert code == 0
    assert decode(out)["verdict"] == "verified"
    (letter,) = shell.json("dead-letters", "list")["data"]
    story = shell.json("deliveries", "show", letter["id"])
    assert [attempt["number"] for attempt in story["attempts"]] == [1, 2, 3]
    assert "Nothing listens on that port" in shell.run("deliveries", "show", letter["id"]).stdout
    assert '"n": 1.10' in shell.run("events", "show", letter["event"]).stdout
    assert shell.json("replays", "create", "--state", "dead", "--dry-run")["matched"] == 1
    assert shell.json("resend", letter["id"])[0]["replay_of"] == letter["id"]
    assert shell.json("dead-letters", "list")["data"] == [] or shell.json("dead-letters", "list")["data"] != [
        letter
    ]
    assert shell.json("notices", "list", "--kind", "delivery.dead")["data"]
    assert shell.run("endpoints", "test", endpoint["id"]).returncode == 7
    rotated = shell.json("endpoints", "rotate-secret", endpoint["id"])
    assert rotated["secret"] != endpoint["secret"]
    assert shell.json("endpoints", "pause", endpoint["id"])["status"] == "paused"
    assert shell.json("endpoints", "resume", endpoint["id"])["status"] == "active"
    assert shell.run("endpoints", "delete", endpoint["id"], "--yes").returncode == 0
    assert shell.run("endpoints", "show", endpoint["id"]).returncode == 4
    assert {lane["name"] for lane in shell.json("lanes")["data"]} == {"first", "retry"}
    assert shell.run("backup", "copy.db").returncode == 0
    assert shell.run("doctor").returncode == 0
    assert shell.stop() == 0
    assert "ON        allow_http" in shell.banner


def test_an_empty_ledger_gets_a_key_that_is_printed_once_and_works(shell: Shell) -> None:
    shell.serve()
    shell.stop(signal.SIGINT)
    assert "requests under way may finish within" in shell.banner
    (line,) = [line for line in shell.banner.splitlines() if "export SUREHOOK_API_KEY=" in line]
    key = line.split("=", 1)[1].strip()
    shell.banner = ""
    shell.serve()
    assert shell.run("lanes").returncode == 3
    assert shell.run("lanes", "--api-key", key).returncode == 0
    assert shell.stop() == 0
    assert key not in shell.banner


def test_a_second_server_on_the_same_port_or_ledger_says_who_is_there(shell: Shell) -> None:
    shell.serve()
    assert shell.server is not None
    port = shell.run("serve")
    ledger = shell.run("serve", "--port", "0")
    assert (port.returncode, ledger.returncode) == (2, 2)
    assert "is taken" in port.stderr
    assert str(shell.server.pid) in ledger.stderr
    assert "Traceback" not in port.stderr + ledger.stderr


def test_a_full_disk_is_said_to_the_publisher(shell: Shell) -> None:
    shell.env |= {"SUREHOOK_API_KEY": "a-key-of-sixteen-chars", "SUREHOOK_DISK_FLOOR_MB": "1048576"}
    shell.serve()
    shell.run("tenants", "create", "Acme", "--id", "acme")
    ran = shell.run("send", "a")
    assert ran.returncode == 1
    assert "too little free disk" in ran.stderr
