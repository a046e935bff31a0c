"""Where the programs are that are not Python's, and what to say when they are not."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

POSTGRES_OLDEST = 14
POSTGRES_HOMES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin")
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"  # where Debian keeps some, and an ordinary user's PATH does not look


class Missing(Exception):
    """A server's program is not installed; the text says which and what installs it."""


def program(service: str, name: str) -> str:
    """The path of a program, or Missing."""
    found = shutil.which(name) or shutil.which(name, path=SBIN)
    if found is None:
        raise Missing(f"needs {service}, which is not installed (no {name}); `make services` installs it")
    return found


def postgres_home() -> Path:
    """The folder with the newest initdb and postgres of at least version 14, or Missing."""
    homes = [home for pattern in POSTGRES_HOMES for home in Path("/").glob(pattern.lstrip("/"))]
    if (beside := shutil.which("initdb")) is not None:
        homes.append(Path(beside).resolve().parent)
    found = {
        home: _major(home) for home in homes if (home / "postgres").exists() and (home / "initdb").exists()
    }
    best = max(found, key=lambda home: found[home], default=None)
    if best is None or found[best] < POSTGRES_OLDEST:
        raise Missing(
            f"needs PostgreSQL, which is not installed (no server of version {POSTGRES_OLDEST} or newer); "
            "`make services` installs it"
        )
    return best


def _major(home: Path) -> int:
    """The version as the path tells it; a path that does not is taken for the oldest one that will do."""
    found = re.search(r"(\d+)", home.parent.name)
    return int(found[1]) if found else POSTGRES_OLDEST


RABBIT_HOMES = ("/usr/lib/rabbitmq/bin", "/usr/local/opt/rabbitmq/sbin", "/opt/homebrew/opt/rabbitmq/sbin")


def rabbitmq_home() -> Path:
    """The folder with RabbitMQ's own scripts, or Missing.

    Debian's wrappers on the PATH insist on root or its own user, and on the system's folders.
    """
    for home in map(Path, RABBIT_HOMES):
        if (home / "rabbitmq-server").exists():
            program("RabbitMQ", "erl")
            return home
    return Path(program("RabbitMQ", "rabbitmq-server")).resolve().parent


def mariadb_home() -> Path:
    """The folder with mariadbd, or Missing. The ledger does not need it; the inbox can lie in it."""
    found = program("MariaDB", "mariadbd")
    for name in ("mariadb-install-db", "my_print_defaults"):
        program("MariaDB", name)
    return Path(found).parent


def node_programs() -> None:
    """Node.js and npm, or Missing: for the client in TypeScript."""
    for name in ("node", "npm"):
        program("Node.js", name)


SERVICES: dict[str, Callable[[], object]] = {
    "PostgreSQL": postgres_home,
    "RabbitMQ": rabbitmq_home,
    "Redis": lambda: program("Redis", "redis-server"),
    "PgBouncer": lambda: program("PgBouncer", "pgbouncer"),
    "MariaDB": mariadb_home,
    "Node.js": node_programs,
}


def missing() -> list[str]:
    """The services whose programs are not installed."""
    absent = []
    for name, look in SERVICES.items():
        try:
            look()
        except Missing:
            absent.append(name)
    return absent
