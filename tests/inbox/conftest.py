"""Every test that takes `house` runs once for each database and each kind of inbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests import servers
from tests.inbox.house import House
from tests.inbox.loop_ends import cancel_others

DATABASES = ("sqlite", "postgresql", "mariadb")
KINDS = ("sync", "async", "django")
# `make test` has every pair; `make check` two that share neither a database nor a kind.
QUICK = {("sqlite", "sync"), ("postgresql", "async")}
GROUNDS = [
    pytest.param(pair, id="-".join(pair), marks=[] if pair in QUICK else pytest.mark.slow)
    for pair in product(DATABASES, KINDS)
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make check` starts no third kind of database."""
    for item in items:
        if "mariadb" in item.name:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner
        # Who is cancelled gives its connection back in a task of its own, or begins another.
        for _ in range(4):
            runner.run(cancel_others(timeout_s=5))


@pytest.fixture
def ground_of(tmp_path: Path) -> Iterator[Callable[[str, str], tuple[str, str]]]:
    """Makes a ground: the kind of inbox, and the URL of an empty database."""
    with ExitStack() as stack:

        def make(database: str, kind: str) -> tuple[str, str]:
            if database == "sqlite":
                return kind, f"sqlite:///{tmp_path / 'inbox.db'}"
            server: Any = servers.postgres() if database == "postgresql" else servers.mariadb()
            return kind, stack.enter_context(server.database())

        yield make


@pytest.fixture(params=GROUNDS)
def ground(
    request: pytest.FixtureRequest, ground_of: Callable[[str, str], tuple[str, str]]
) -> tuple[str, str]:
    """The kind of inbox, and the URL of an empty database."""
    return ground_of(*request.param)


@pytest.fixture
def houses(ground: tuple[str, str], runner: asyncio.Runner) -> Iterator[Callable[..., House]]:
    """Makes houses with options of the inbox."""
    made: list[House] = []
    kind, url = ground
    with ExitStack() as stack:
        if kind == "django":
            from tests.inbox import djangos

            stack.enter_context(djangos.at(url))

        def make(**options: Any) -> House:
            house = (
                djangos.DjangoHouse(runner, **options)
                if kind == "django"
                else House(*ground, runner, **options)
            )
            made.append(house.prepare())
            return made[-1]

        yield make
        for house in made:
            house.close()


@pytest.fixture
def house(houses: Callable[..., House]) -> House:
    return houses()
