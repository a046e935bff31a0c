"""Each test that takes `app` runs once for each database and each library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, text

from tests import servers
from tests.outbox.applications import BY_DATABASE, Application, ready

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql"}
DIALECTS = {"sqlite": "sqlite", "postgresql": "postgresql", "mariadb": "mysql"}
PAIRS = [
    pytest.param(
        (name, made), id=f"{name}-{made.__name__}", marks=[pytest.mark.slow] if name == "mariadb" else []
    )
    for name, kinds in BY_DATABASE.items()
    for made in kinds
]


class OutboxDatabase:
    """A database with the tables of an outbox."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self.dialect: Any = DIALECTS[name]
        self.engine: Engine = create_engine(url.replace(f"{name}://", f"{DRIVERS[name]}://"))
        with self.engine.begin() as connection:
            ready(self.dialect, lambda statement: connection.execute(text(statement)))

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with self.engine.begin() as connection:
            found = connection.execute(text(sql))
            return [tuple(row) for row in found] if found.returns_rows else []


@pytest.fixture(params=PAIRS)
def made(request: pytest.FixtureRequest) -> tuple[str, Callable[[str], Application]]:
    return request.param


@pytest.fixture
def db(made: tuple[str, Any], tmp_path: Path) -> Iterator[OutboxDatabase]:
    yield from database_of(made[0], tmp_path)


def database_of(name: str, tmp_path: Path) -> Iterator[OutboxDatabase]:
    if name == "sqlite":
        found = OutboxDatabase(name, f"sqlite:///{tmp_path / 'app.db'}")
        yield found
        found.engine.dispose()
        return
    server: Any = servers.postgres() if name == "postgresql" else servers.mariadb()
    with server.database() as url:
        found = OutboxDatabase(name, url)
        yield found
        found.engine.dispose()


@pytest.fixture
def app(made: tuple[str, Callable[[str], Application]], db: OutboxDatabase) -> Application:
    return made[1](db.url)
