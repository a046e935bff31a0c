"""Every test that takes `house` runs once for each database and each kind of inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.inbox.house import House

DATABASES = ("sqlite", "postgresql", "mariadb")
GROUNDS = [(database, kind) for database in DATABASES for kind in ("sync", "async")]


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=GROUNDS, ids=lambda ground: "-".join(ground))
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The kind of inbox, and the URL of an empty database."""
    database, kind = request.param
    with ExitStack() as stack:
        if database == "sqlite":
            url = f"sqlite:///{tmp_path / 'inbox.db'}"
        elif database == "postgresql":
            url = stack.enter_context(servers.postgres().database())
        else:
            url = stack.enter_context(servers.mariadb().database())
        yield kind, url


@pytest.fixture
def houses(ground: tuple[str, str], runner: asyncio.Runner) -> Iterator[Callable[..., House]]:
    """Makes houses with options of the inbox."""
    made: list[House] = []

    def make(**options: Any) -> House:
        made.append(House(*ground, runner, **options).prepare())
        return made[-1]

    yield make
    for house in made:
        house.close()


@pytest.fixture
def house(houses: Callable[..., House]) -> House:
    return houses()
