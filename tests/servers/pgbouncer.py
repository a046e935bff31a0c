"""A private PgBouncer in front of a PostgreSQL: the pooler in whose transaction mode sessions share connections."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from pathlib import Path
from typing import Literal

from tests.servers import folder, ports, sql
from tests.servers.installed import program
from tests.servers.postgres import USER, Postgres
from tests.servers.program import Program

Mode = Literal["session", "transaction", "statement"]
CONFIG = """\
[databases]
* = host=127.0.0.1 port={server_port} user={user}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
max_client_conn = 300
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
"""


class PgBouncer(Program):
    """One pooler. Its databases are the server's."""

    def __init__(self, place: Path, server: Postgres, mode: Mode) -> None:
        super().__init__(place)
        self.port = ports.reserve()
        self.config = place / "pgbouncer.ini"
        self.config.write_text(CONFIG.format(server_port=server.port, port=self.port, mode=mode, user=USER))
        folder.give(self.config)

    @classmethod
    def new(cls, server: Postgres, mode: Mode = "transaction") -> PgBouncer:
        """A running pooler; `close()` it, or leave it to the end of the run."""
        program("PgBouncer", "pgbouncer")
        place = Path(tempfile.mkdtemp(prefix="pgbouncer-", dir=folder.run_folder()))
        folder.give(place)
        made = cls(place, server, mode)
        made.start()
        return made

    def url(self, database: str = "postgres") -> str:
        """Where a client finds a database; `through(url)` gives the same for a server's URL."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def through(self, url: str) -> str:
        """The pooled way to the database of a server's URL."""
        return self.url(url.rpartition("/")[2])

    def start(self) -> float:
        """Start it and wait until it answers; the seconds it took."""
        began = time.monotonic()
        self.spawn([program("PgBouncer", "pgbouncer"), str(self.config)])
        self.until(self.ready)
        return time.monotonic() - began

    def ready(self) -> bool:
        """Whether it answers a query with the server's answer."""
        try:
            return sql.ask(self.port, "select 1", seconds=5.0) == [("1",)]
        except (OSError, sql.SqlError):
            return False

    def stop(self, *, immediate: bool = False) -> int:
        """Stop it; nanoseconds of the monotonic clock just before."""
        if immediate:
            return self.kill()
        at = time.monotonic_ns()
        for pid in self.pids():
            os.kill(pid, signal.SIGTERM)
        self.gone()
        return at

    def restart(self, *, immediate: bool = False) -> float:
        """Stop and start; seconds of the start."""
        self.stop(immediate=immediate)
        return self.start()

    def close(self) -> None:
        """End it."""
        self.kill()
