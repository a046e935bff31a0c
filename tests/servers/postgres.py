"""Private PostgreSQL servers, and a fresh database of one for each test.

`postgres()` is the run's shared server: everybody makes databases in it and nobody stops it. Who wants to stop, kill or
freeze one takes `Postgres.new()`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers import folder, ports, sql
from tests.servers.installed import postgres_home
from tests.servers.program import NotStarted, Program

USER = "postgres"
PORT_TRIES = 5
ASK_S = 60.0  # a statement of a harness
# What survives a killed process is in the kernel's hands already; only a power cut needs the disk to have it.
HASTY = {"fsync": "off", "full_page_writes": "off"}
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # its path may be longer than a socket's may be
    "dynamic_shared_memory_type": "mmap",  # in the folder, so that a killed server leaves nothing in /dev/shm
    "max_connections": "300",
    "shared_buffers": "64MB",
    "max_wal_size": "512MB",
    "log_line_prefix": "%m [%p] %a ",
    "log_lock_waits": "on",
}


class Postgres(Program):
    """One server. `settings` are those of postgresql.conf; `durable` writes through to the disk."""

    def __init__(
        self, place: Path, port: int, *, durable: bool = False, settings: dict[str, str] | None = None
    ) -> None:
        super().__init__(place)
        self.port = port
        self.data = place / "data"
        self.settings = {**SETTINGS, **({} if durable else HASTY), **(settings or {})}

    @classmethod
    def new(cls, *, durable: bool = False, settings: dict[str, str] | None = None) -> Postgres:
        """A running server of one's own; `close()` it, or leave it to the end of the run."""
        place = Path(tempfile.mkdtemp(prefix="postgres-", dir=folder.run_folder()))
        folder.give(place)
        for tries in range(PORT_TRIES):
            made = cls(place, ports.reserve(), durable=durable, settings=settings)
            try:
                made.start()
            except NotStarted:
                if tries == PORT_TRIES - 1 or "Address already in use" not in made.log.read_text(
                    errors="replace"
                ):
                    raise
            else:
                return made
        raise AssertionError("unreachable")

    def url(self, database: str = "postgres") -> str:
        """Where a client finds a database."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def ask(self, query: str, database: str = "postgres", *, seconds: float = ASK_S) -> list[sql.Row]:
        """Run statements; all rows, as text. TimeoutError when it does not answer in time."""
        return sql.ask(self.port, query, database=database, seconds=seconds)

    def start(self) -> float:
        """Start it and wait until it answers; the seconds it took."""
        began = time.monotonic()
        if not self.data.exists():
            shutil.copytree(_empty_data(), self.data, symlinks=True)
            _give_all(self.data)
        options = [f"--{name}={value}" for name, value in {**self.settings, "port": str(self.port)}.items()]
        self.spawn([str(postgres_home() / "postgres"), "-D", str(self.data), *options])
        self.until(self.ready)
        return time.monotonic() - began

    def ready(self) -> bool:
        """Whether it answers a query."""
        try:
            return sql.ask(self.port, "select 1", seconds=5.0) == [("1",)]
        except (OSError, sql.SqlError):
            return False

    @property
    def postmaster(self) -> int | None:
        """The process id of its first process, or None when it is stopped."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            pid = int((self.data / "postmaster.pid").read_text().splitlines()[0])
            return pid if pid in self.pids() else None
        return None

    def stop(self, *, immediate: bool = False) -> int:
        """Stop it: sessions are ended, or with `immediate` cut without a word and without a checkpoint.

        Nanoseconds of the monotonic clock just before.
        """
        at = time.monotonic_ns()
        if (pid := self.postmaster) is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGQUIT if immediate else signal.SIGINT)
        self.gone()
        return at

    def restart(self, *, immediate: bool = False) -> float:
        """Stop and start; seconds of the start."""
        self.stop(immediate=immediate)
        return self.start()

    def close(self) -> None:
        """Stop it and remove its data; the log stays until the run has ended well."""
        self.thaw()
        self.stop(immediate=True)
        shutil.rmtree(self.data, ignore_errors=True)

    @contextmanager
    def database(self, prepare: Callable[[str], None] | None = None, name: str = "prepared") -> Iterator[str]:
        """The URL of a fresh database, which is dropped afterwards.

        `prepare` fills one database of this name by its URL, once for a server; the others are copies of it. It must leave
        no connection behind.
        """
        template = "template0" if prepare is None else self._prepared(prepare, name)
        fresh = f"t{os.getpid()}_{time.monotonic_ns()}"
        self.ask(f"create database {fresh} template {template}")
        try:
            yield self.url(fresh)
        finally:
            with contextlib.suppress(OSError):  # a server that was stopped has none to drop
                self.ask(f"drop database if exists {fresh} with (force)")

    def _prepared(self, prepare: Callable[[str], None], name: str) -> str:
        template = f"template_{name}"
        with folder.only_one(f"{self.place.name}-{template}"):
            if not self.ask(f"select 1 from pg_database where datname = '{template}'"):
                self.ask(f"drop database if exists {template}_raw with (force)")
                self.ask(f"create database {template}_raw template template0")
                prepare(self.url(f"{template}_raw"))
                # Only a whole one has the name.
                self.ask(f"alter database {template}_raw rename to {template}")
        return template


def postgres() -> Postgres:
    """The run's shared server, started by whoever asks first."""
    place = folder.run_folder() / "postgres"
    note = folder.run_folder() / "postgres.port"
    with folder.only_one("postgres"):
        if note.exists():
            return Postgres(place, int(note.read_text()))
        postgres_home()
        for _ in range(PORT_TRIES):
            made = Postgres(place, ports.reserve())
            try:
                made.start()
            except NotStarted as error:
                if "Address already in use" not in str(error):
                    raise
                continue
            note.write_text(str(made.port))
            return made
    raise NotStarted(f"no free port in {PORT_TRIES} tries")


def _empty_data() -> Path:
    """A data folder as initdb makes it, once for a run; servers begin with a copy, which is ten times as fast."""
    made = folder.run_folder() / "postgres-empty"
    with folder.only_one("postgres-empty"):
        if not (made / "data").exists():
            program = Program(made)
            program.run([
                str(postgres_home() / "initdb"), "-D", str(made / "raw"), "-U", USER, "-A", "trust", "-E", "UTF8",
                "--locale=C.UTF-8", "--no-sync", "--no-instructions",
            ])  # fmt: skip
            (made / "raw").rename(made / "data")
    return made / "data"


def _give_all(path: Path) -> None:
    if (user := folder.servant()) is not None:
        subprocess.run(["chown", "-R", f"{user.pw_uid}:{user.pw_gid}", str(path)], check=True)
