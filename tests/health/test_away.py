"""What the real stores do when their server is away, empty, or slow."""

from __future__ import annotations

import time

import pytest

from surehook.health.ledger import PATIENCE_S as LEDGER_PATIENCE_S
from surehook.health.ledger import LedgerHealth
from surehook.health.redis import PATIENCE_S, RedisHealth
from surehook.ports.health import HealthAway
from tests.health.test_shared import A, B, closed, counted, only, opened, say


async def test_redis_that_is_gone_is_away_and_comes_back_empty(redis):
    health = RedisHealth(redis.url)
    await health.open()
    await say(health, updates=[opened()])
    redis.kill()
    with pytest.raises(HealthAway):
        await say(health)
    redis.start()
    assert (await say(health)).views == []
    assert only(await say(health, B, updates=[opened(again=True)])).state == "open"
    await health.close()


async def test_redis_that_does_not_answer_is_away_within_its_patience(redis):
    health = RedisHealth(redis.url)
    await health.open()
    redis.freeze()
    began = time.monotonic()
    with pytest.raises(HealthAway, match=r"\w$"):
        await say(health)
    redis.thaw()
    assert time.monotonic() - began < 3 * PATIENCE_S
    assert (await say(health)).views == []
    await health.close()


async def test_a_key_of_another_kind_is_trouble_of_the_store_and_not_ours(redis):
    from redis.asyncio import Redis

    health = RedisHealth(redis.url)
    other = Redis.from_url(redis.url)
    await other.set("{surehook}:health:acme|https://a.example:443/hook", "not a hash")
    with pytest.raises(HealthAway):
        await say(health, counts=[counted(1, 1)])
    await other.flushall()
    assert only(await say(health, counts=[counted(1, 1)])).calls == 1
    await other.aclose()
    await health.close()


async def test_redis_without_its_scripts_is_given_them_again(redis):
    from redis.asyncio import Redis

    health = RedisHealth(redis.url)
    await say(health, updates=[opened()])
    other = Redis.from_url(redis.url)
    await other.script_flush()
    assert only(await say(health, updates=[closed()])).state == "closed"
    await other.aclose()
    await health.close()


async def test_a_database_that_ends_the_connection_is_away_once(postgres, database):
    health = LedgerHealth(database)
    await say(health, updates=[opened()])
    postgres.ask(  # which blocks the loop: it has not heard yet that the connection is gone
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = 'surehook health'"
        " and datname = current_database()",
        database.rpartition("/")[2],
    )
    with pytest.raises(HealthAway):
        await say(health)
    assert only(await say(health, B)).state == "open"
    await health.close()


async def test_a_locked_table_costs_its_patience_and_no_more(database):
    health = LedgerHealth(database)
    await health.open()
    import asyncpg

    other = await asyncpg.connect(database)
    async with other.transaction():
        await other.execute("lock table health_breaker in access exclusive mode")
        began = time.monotonic()
        with pytest.raises(HealthAway):
            await say(health, updates=[opened()])
        assert time.monotonic() - began < 2 * LEDGER_PATIENCE_S
    assert only(await say(health, A, updates=[opened()])).state == "open"
    await other.close()
    await health.close()


@pytest.mark.parametrize("make", [RedisHealth, LedgerHealth])
async def test_a_server_that_is_not_there_is_away(make, unused_tcp_port):
    scheme = "redis" if make is RedisHealth else "postgresql"
    health = make(f"{scheme}://127.0.0.1:{unused_tcp_port}/0")
    with pytest.raises(HealthAway):
        await health.open()
    with pytest.raises(HealthAway):
        await health.take_probe("acme", "k", node=A, until=1, now=0)
    await health.close()
