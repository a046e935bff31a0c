from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.house import House


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    yield made
    made.close()
