"""Servers for tests that need them: what is not installed skips its tests, and the end says so.

`SERVICES=required` makes a missing service an error before the first test (`.ci/run` sets it).
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import servers
from tests.budget import examples
from tests.planted import PlantedCopy
from tests.servers import Missing, Postgres, Rabbits, Redis, folder

# Properties are tried without a stopwatch: the machine may be busy, and slowness is measured elsewhere.
settings.register_profile(
    "unhurried", deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")

NEEDS = "needs "  # how the reason of such a skip begins, see Missing


def pytest_configure(config: pytest.Config) -> None:
    """Refuse to begin without required services; make the run's folder before other processes of it begin."""
    if hasattr(config, "workerinput"):
        return
    asked = os.environ.get("SERVICES", "")
    if asked not in ("", "required"):
        raise pytest.UsageError(f"SERVICES={asked}: may be `required`, or absent")
    if asked and (absent := servers.missing()):
        raise pytest.UsageError(f"not installed: {', '.join(absent)}; `make services` installs them")
    servers.run_folder()


def pytest_collection() -> None:
    """Ten thousand tests are made and none of them is garbage: looking for some took a fifth of the time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What was collected lives to the end."""
    gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Sweep the servers away; their logs stay when something failed."""
    kept = folder.end(well=getattr(config, "_all_passed", False))
    if kept is not None and (writer := config.pluginmanager.get_plugin("terminalreporter")) is not None:
        writer.write_line(f"the servers' logs: {kept}")


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Remember how it ended."""
    ended_well = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    session.config._all_passed = exitstatus in ended_well  # type: ignore[attr-defined]


def _skipping(item: pytest.Item) -> Iterator[Any]:
    try:
        return (yield)
    except Missing as why:
        raise pytest.skip.Exception(str(why), _use_item_location=True) from None


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_skipping)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_skipping)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Which services were missing, and how many tests were left out for each."""
    absent = servers.missing()
    if not absent:
        return
    skipped: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        if reason.startswith(NEEDS):
            skipped[reason.removeprefix(NEEDS).partition(",")[0]] += 1
    terminalreporter.section("services that are not installed", sep="=", yellow=True)
    for name in absent:
        terminalreporter.write_line(f"{name}: {skipped[name]} tests skipped")
    terminalreporter.write_line("`make services` installs them, or says what to install")


@pytest.fixture(scope="module", autouse=True)
def _own_garbage() -> Iterator[None]:
    """Collect a module's garbage when it ends, and never within: what a test left open fails here, not somewhere else."""
    gc.disable()
    yield
    gc.collect()
    gc.freeze()  # what lives now lives to the end as a rule: the next collection need not walk it again


@pytest.fixture(scope="session")
def planted_copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlantedCopy]:
    """A copy of the sources to plant bugs in, for one test at a time."""
    copy = PlantedCopy(tmp_path_factory.mktemp("planted"))
    yield copy
    copy.close()


@pytest.fixture(scope="session")
def postgres() -> Postgres:
    """The run's shared PostgreSQL server: make databases in it, and leave it running."""
    return servers.postgres()


@pytest.fixture
def database(postgres: Postgres) -> Iterator[str]:
    """The URL of an empty database of the test's own."""
    with postgres.database() as url:
        yield url


@pytest.fixture
def prepared(postgres: Postgres) -> Iterator[Callable[..., str]]:
    """`prepared(fill, name)`: the URL of a fresh copy of a database that `fill(url)` filled once for the whole run."""
    with ExitStack() as stack:
        yield lambda fill, name: stack.enter_context(postgres.database(fill, name))


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A PostgreSQL server of the test's own, to stop, kill and freeze."""
    server = Postgres.new()
    yield server
    server.close()


@pytest.fixture
def redis() -> Iterator[Redis]:
    """A Redis of the test's own, empty."""
    server = Redis.new()
    yield server
    server.close()


@pytest.fixture(scope="session")
def rabbitmq() -> Rabbits:
    """The run's shared RabbitMQ, one node: take virtual hosts of it, and leave it running."""
    return servers.rabbitmq()


@pytest.fixture
def broker(rabbitmq: Rabbits) -> str:
    """The URL of an empty virtual host of the test's own."""
    return rabbitmq.vhost()


@pytest.fixture
def own_rabbitmq() -> Iterator[Rabbits]:
    """A RabbitMQ node of the test's own, to stop, kill and freeze."""
    server = Rabbits.new()
    yield server
    server.close()
