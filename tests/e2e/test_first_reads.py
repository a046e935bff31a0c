"""The first lists after a start, asked for all at once: what they need is not loaded before, and loaded for all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

from lab.bench.server import KEY
from tests.e2e.calling import Caller
from tests.e2e.shop import Shop
from tests.servers import Postgres

# What loads takes a quarter of a second: some ask before it has begun, and most meanwhile.
AT_ONCE, EACH = (16, 5)


@pytest.fixture(params=["sqlite", "postgres"])
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    """A server that has answered nothing but whether it is ready."""
    with ExitStack() as ends:
        settings = {}
        if request.param == "postgres":
            server: Postgres = request.getfixturevalue("postgres")
            settings["SUREHOOK_DATABASE_URL"] = ends.enter_context(server.database())
        shop = Shop(tmp_path, **settings)
        ends.callback(shop.close)
        shop.start()
        yield shop


@pytest.mark.parametrize("path", ["/v1/endpoints", "/v1/dead-letters"])
def test_the_first_lists_after_a_start_are_all_answered(fresh: Shop, path: str) -> None:
    together = Barrier(AT_ONCE)

    def ask(_: int) -> list[int]:
        caller = Caller(fresh.server.port, KEY)
        together.wait()
        try:
            return [caller.ask("GET", path).status for _ in range(EACH)]
        finally:
            caller.close()

    with ThreadPoolExecutor(AT_ONCE) as threads:
        statuses = Counter(status for each in threads.map(ask, range(AT_ONCE)) for status in each)
    assert statuses == {200: AT_ONCE * EACH}, fresh.log[-3000:]
