"""The three stores of shared health, each empty, for one suite."""

from __future__ import annotations

import pytest

from lab.health import LocalHealth


@pytest.fixture(params=["local", "redis", "ledger"])
async def health(request: pytest.FixtureRequest):
    store = _store(request)
    await store.open()
    yield store
    await store.close()


def _store(request: pytest.FixtureRequest):
    if request.param == "local":
        return LocalHealth()
    if request.param == "redis":
        server = request.getfixturevalue("redis")
        from surehook.health.redis import RedisHealth

        return RedisHealth(server.url)
    url = request.getfixturevalue("database")
    from surehook.health.ledger import LedgerHealth

    return LedgerHealth(url)
