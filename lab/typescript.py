"""`python -m lab typescript`: generates the client in clients/typescript from the published OpenAPI document, compiles it, and
has it publish an event that a receiver in Python takes: other languages are served by the document alone."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from lab.bench.server import KEY, Launch, Server
from surehook.cli.output import line
from surehook.core.errors import SurehookError
from surehook.verify import verify

FOLDER = Path(__file__).parents[1] / "clients" / "typescript"
BUILD_S = 300.0  # packages may have to be fetched
RUN_S = 60.0
SAID = ("once", "refused unknown_tenant", "delivered")  # in this order


class NotServed(SurehookError):
    """Node.js is missing, or a step failed; the text says which."""


class Receiver(HTTPServer):
    """Keeps the requests that come; verified when the secret is known."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Taking)
        self.requests: list[tuple[bytes, dict[str, str]]] = []


class Taking(BaseHTTPRequestHandler):
    """Answers 200 to every request."""

    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((body, dict(self.headers)))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *words: object) -> None:
        """Nothing is logged."""


def npm(*words: str, limit_s: float, **env: str) -> str:
    """Run npm in the client's folder; its output. Raises NotServed."""
    program = shutil.which("npm")
    if program is None:
        raise NotServed("npm is not installed: `make services` installs Node.js, or says what to install")
    done = subprocess.run(
        [program, *words], cwd=FOLDER, env={**os.environ, **env}, capture_output=True, text=True, timeout=limit_s,
    )  # fmt: skip
    if done.returncode:
        raise NotServed(f"npm {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build() -> None:
    """Fetch what it is made of, generate its types, compile it."""
    npm("install", "--no-package-lock", "--no-audit", "--no-fund", "--silent", limit_s=BUILD_S)
    npm("run", "--silent", "build", limit_s=BUILD_S)


def deliver() -> list[str]:
    """What the example says while it publishes to a server and a receiver of its own. Raises NotServed."""
    with tempfile.TemporaryDirectory(prefix="surehook-typescript-") as folder, Receiver() as receiver:
        threading.Thread(target=receiver.serve_forever, daemon=True).start()
        server = Server(Launch(folder=Path(folder)))
        server.start()
        try:
            server.wait_ready()
            said = npm(
                "run", "--silent", "example", limit_s=RUN_S, SUREHOOK_URL=f"http://127.0.0.1:{server.port}",
                SUREHOOK_API_KEY=KEY, RECEIVER=f"http://127.0.0.1:{receiver.server_port}/hooks",
            ).splitlines()  # fmt: skip
        finally:
            server.stop()
            receiver.shutdown()
    secret = said[0].removeprefix("secret ")
    if [one for end, one in zip(SAID, said[1:], strict=True) if not one.endswith(end)]:
        raise NotServed("the example said something else:\n" + "\n".join(said[1:]))
    ((body, headers),) = receiver.requests
    message = verify("surehook", body, headers, secret)
    return [*said[1:], f"verified {message.id}"]


def main(words: Sequence[str]) -> int:
    argparse.ArgumentParser(prog="python -m lab typescript", description=__doc__).parse_args(words)
    build()
    for said in deliver():
        line(said)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
