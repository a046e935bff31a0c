"""A scene for a bench: a server on a new ledger, a receiver, and generators as they are needed."""

from __future__ import annotations

import contextlib
import http.client
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from lab.bench import processes
from lab.bench.api import Api
from lab.bench.records import Arrivals, Count, Plan, Sent
from lab.bench.server import KEY, Launch, Server
from surehook.core.errors import SurehookError

TENANT = "acme"
LOOK_S = 0.02  # between two looks at the sink while the last deliveries arrive


class Say(Protocol):
    """Output for progress: lines for steps, a moving line for what changes while a step runs."""

    def step(self, text: str) -> None:
        """A new step begins."""

    def tick(self, text: str) -> None:
        """State of the step."""


class BenchFailed(SurehookError):
    """A bench could not be carried out: what is missing is not a figure but the run."""


class Silent:
    """Says nothing."""

    def step(self, text: str) -> None:
        """Nothing."""

    def tick(self, text: str) -> None:
        """Nothing."""


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of every bench: whom to start, where, how long, and where progress goes."""

    say: Say = msgspec.field(default_factory=Silent)
    seconds: float | None = None  # None: the scenario's own length
    command: tuple[str, ...] = ()
    database_url: str | None = None
    folder: pathlib.Path | None = None  # parent of the temporary ledger; None: the system's
    settings: dict[str, str] = {}
    still_s: float = 15.0  # no arrival for so long, with something missing: the rest is not coming


class Sink:
    """The receiver's process."""

    def __init__(self, process: Any) -> None:
        self.process = process
        told = process.stdout.readline()
        if not told:
            raise BenchFailed("the receiver ended while it started")
        self.port = int(told)
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def url(self, path: str) -> str:
        """An address of this receiver."""
        return f"http://127.0.0.1:{self.port}{path}"

    def _call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        self._connection.request(method, path, body)
        return self._connection.getresponse().read()

    def count(self) -> Count:
        """Totals."""
        return msgspec.json.decode(self._call("GET", "/count"), type=Count)

    def report(self) -> Arrivals:
        """All arrivals."""
        return msgspec.msgpack.decode(self._call("GET", "/report"), type=Arrivals)

    def reset(self) -> None:
        """Forget all arrivals."""
        self._call("POST", "/reset", b"")

    def close(self) -> None:
        """Close the connection it is asked on; its process ends with its stdin."""
        self._connection.close()

    def due(self, instant_ns: int) -> None:
        """Set the instant at which /late begins to answer 200."""
        self._call("POST", "/due", str(instant_ns).encode())


@contextlib.contextmanager
def receiver() -> Iterator[Sink]:
    """A receiver for as long as it is needed."""
    with processes.ending(processes.bench_process("sink")) as process:
        sink = Sink(process)
        try:
            yield sink
        finally:
            sink.close()


class Load:
    """A generator's process, at work from the start."""

    def __init__(self, plan: Plan) -> None:
        # A file, not a pipe: a report of many megabytes must not hold the generator up at its end.
        self._report = pathlib.Path(tempfile.mkstemp(prefix="surehook-load-")[1])
        self._process = processes.bench_process("load", str(self._report))
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(plan) + b"\n")
        self._process.stdin.flush()

    def wait(self) -> Sent:
        """Wait for its end; its log."""
        status = self._process.wait()
        self._close()
        answer = self._report.read_bytes() if self._report.exists() else b""
        self._report.unlink(missing_ok=True)
        if status or not answer:
            raise BenchFailed(f"the generator ended with status {status} and {len(answer)} bytes of report")
        return msgspec.msgpack.decode(answer, type=Sent)

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def stop(self) -> Sent:
        """End its sending now; what it saw."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.wait()

    def abandon(self) -> None:
        """Make sure it is gone, whatever it was doing."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._close()
        self._report.unlink(missing_ok=True)


class Stage:
    """Server and receiver, and what was started beside them."""

    def __init__(self, server: Server, sink: Sink, setup: Setup, stack: contextlib.ExitStack) -> None:
        self.server = server
        self.sink = sink
        self.say = setup.say
        self.still_s = setup.still_s
        self._stack = stack

    @property
    def api(self) -> Api:
        """The server's API."""
        return self.server.api

    def another_sink(self) -> Sink:
        """One more receiver, so that a crowd does not share a process with what is measured."""
        return self._stack.enter_context(receiver())

    def endpoint(self, path: str, types: list[str], *, policy: Any = None, sink: Sink | None = None) -> str:
        """An endpoint of the tenant at a path of a receiver; its id."""
        return self.api.endpoint(TENANT, (sink or self.sink).url(path), types, policy)

    def load(self, *types: str, **plan: Any) -> Load:
        """A generator for these event types; `plan` as in Plan."""
        load = Load(Plan(port=self.server.port, key=KEY, tenant=TENANT, types=types, **plan))
        self._stack.callback(load.abandon)
        return load

    def drain(self, expected: int, *, waiting: tuple[str, ...] = ("ready", "held", "scheduled")) -> float:
        """Wait until `expected` deliveries were answered 2xx and the lanes hold nothing of `waiting`.

        Returns the instant (monotonic seconds). Gives up when nothing has moved for `still_s`.
        """
        moved, before = time.monotonic(), -1
        while True:
            answered = self.sink.count().answered
            left = 0
            if answered >= expected:
                left = sum(int(lane[name]) for lane in self.api.lanes() for name in waiting)
                if left == 0:
                    return time.monotonic()
            if answered - left != before:
                moved, before = time.monotonic(), answered - left
                self.say.tick(f"{answered:,} of {expected:,} delivered")
            if time.monotonic() - moved > self.still_s:
                return time.monotonic()
            time.sleep(LOOK_S)


@contextlib.contextmanager
def stage(setup: Setup) -> Iterator[Stage]:
    """A ready server with the tenant and a receiver; everything is gone afterwards."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="surehook-bench-", dir=setup.folder))
        sink = stack.enter_context(receiver())
        launch = Launch(
            folder=pathlib.Path(folder),
            command=setup.command,
            database_url=setup.database_url,
            settings=setup.settings,
        )
        server = Server(launch)
        stack.callback(server.stop)
        server.start()
        server.wait_ready()
        server.api.tenant(TENANT)
        yield Stage(server, sink, setup, stack)
