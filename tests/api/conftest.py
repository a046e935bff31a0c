from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.ledger.ledger import MemoryLedger
from surehook.ledgers.sqlite import SqliteLedger
from tests.api.house import House

LEDGERS: dict[str, Callable[[Path], Any]] = {
    "memory": lambda place: MemoryLedger(),
    "sqlite": lambda place: SqliteLedger(str(place / "book.db"), inline=True, disk_floor_bytes=0),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Modules that say `ON_SQLITE = True` run on both ledgers: what a caller sees must not depend on the book."""
    if "house" in metafunc.fixturenames:
        both = getattr(metafunc.module, "ON_SQLITE", False)
        sqlite = [pytest.param("sqlite", marks=pytest.mark.slow)] if both else []
        metafunc.parametrize("house", ["memory", *sqlite], indirect=True)


@pytest.fixture
def house(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[House]:
    made = House(LEDGERS[request.param](tmp_path))
    yield made
    made.close()


@pytest.fixture
def a_tenant(house: House) -> None:
    """The house's tenant is there."""
    house.tenant()
