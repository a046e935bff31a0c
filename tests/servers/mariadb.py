"""Private MariaDB servers, and a fresh database of one for each test: what the inbox says of MySQL is tried on it."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers import folder, ports
from tests.servers.installed import mariadb_home, program
from tests.servers.program import NotStarted, Program

USER = "surehook"
PORT_TRIES = 5
SETTINGS = (
    "--no-defaults", "--bind-address=127.0.0.1", "--skip-log-bin", "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M", "--innodb-flush-log-at-trx-commit=0", "--skip-name-resolve", "--max-connections=200",
)  # fmt: skip


class MariaDb(Program):
    """One server. It writes to the disk at leisure: what survives a killed process is in the kernel's hands already."""

    def __init__(self, place: Path, port: int) -> None:
        super().__init__(place)
        self.port = port
        self.data = place / "data"

    def url(self, database: str) -> str:
        """Where a client finds a database."""
        return f"mariadb://{USER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> float:
        """Start it and wait until it answers; the seconds it took."""
        began = time.monotonic()
        if not self.data.exists():
            self.run([
                program("MariaDB", "mariadb-install-db"), "--no-defaults", f"--datadir={self.data}", "--skip-test-db",
                "--auth-root-authentication-method=normal", f"--tmpdir={self.place}",
            ])  # fmt: skip
        socket = Path(tempfile.gettempdir()) / f"surehook-{os.getpid()}-{self.port}.sock"
        start = self.place / "start.sql"
        # One statement in each line: that is how the server reads this file.
        start.write_text(
            f"create user if not exists {USER}@'127.0.0.1';\ngrant all on *.* to {USER}@'127.0.0.1';\n"
        )
        folder.give(start)
        self.spawn([
            str(mariadb_home() / "mariadbd"), *SETTINGS, f"--datadir={self.data}", f"--port={self.port}",
            f"--socket={socket}", f"--init-file={start}",
        ])  # fmt: skip
        self.until(self.ready)
        return time.monotonic() - began

    def ready(self) -> bool:
        """Whether it answers a query."""
        import pymysql

        try:
            return self.ask("select 1") == [(1,)]
        except pymysql.Error:
            return False

    def ask(self, query: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """One statement on a connection of its own; its rows."""
        import pymysql

        with pymysql.connect(host="127.0.0.1", port=self.port, user=USER, database=database) as connection:
            with connection.cursor() as cursor:
                cursor.execute(query)
                rows = list(cursor.fetchall())
            connection.commit()
        return rows

    def stop(self, *, immediate: bool = False) -> int:
        """Stop it, in order or with SIGKILL; nanoseconds of the monotonic clock just before."""
        if immediate:
            return self.kill()
        at = time.monotonic_ns()
        for pid in self.pids():
            os.kill(pid, signal.SIGTERM)
        self.gone()
        return at

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a fresh database, which is dropped afterwards."""
        fresh = f"t{os.getpid()}_{time.monotonic_ns()}"
        self.ask(f"create database {fresh} character set utf8mb4")
        try:
            yield self.url(fresh)
        finally:
            with contextlib.suppress(Exception):  # a server that was stopped has none to drop
                self.ask(f"drop database if exists {fresh}")


def mariadb() -> MariaDb:
    """The run's shared server, started by whoever asks first."""
    place = folder.run_folder() / "mariadb"
    note = folder.run_folder() / "mariadb.port"
    with folder.only_one("mariadb"):
        if note.exists():
            return MariaDb(place, int(note.read_text()))
        mariadb_home()
        for _ in range(PORT_TRIES):
            made = MariaDb(place, ports.reserve())
            try:
                made.start()
            except NotStarted as error:
                if "Address already in use" not in str(error):
                    raise
                continue
            note.write_text(str(made.port))
            return made
    raise NotStarted(f"no free port in {PORT_TRIES} tries")
