"""One server for all tests of the contract and of behaviour; each test has tenants and paths of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.calling import Caller
from tests.e2e.shop import Shop

QUICK = "test_publishing.py"  # the way of an event through a whole server


def pytest_itemcollected(item: pytest.Item) -> None:
    """`make check` looks at one module with a real server: the others' rules are shown to it within the process."""
    if item.path.name != QUICK:
        item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The shared server, started once per test process."""
    made = Shop(tmp_path_factory.mktemp("shop"))
    try:
        made.start()
        yield made
        assert made.server.alive(), made.log[-3000:]
        defects = [
            line for line in made.log.splitlines() if "Traceback" in line or '"level": "error"' in line
        ]
        assert not defects, defects[:5]
    finally:
        made.close()


@pytest.fixture(scope="session")
def api(shop: Shop) -> Caller:
    """A caller with the bootstrap key."""
    return shop.api


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Shop]:
    """A server of the test's own, where it looks at figures of a whole server."""
    made = Shop(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def stranger(shop: Shop) -> Iterator[Caller]:
    """A caller without a key."""
    caller = Caller(shop.server.port, None)
    yield caller
    caller.close()
