"""Shared health in Redis (6 or newer): one script an exchange, so that counting, deciding and reading are one step.

Redis may lose everything at any time: it keeps no promise of ours. It may also be away, slow or full: every
call has a deadline, and whatever goes wrong is `HealthAway`. Keys share one hash tag and expire by themselves.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from importlib.resources import files
from typing import Any, cast

import msgspec
from redis.asyncio import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from surehook.core.breaker import BUCKETS
from surehook.core.errors import said
from surehook.ports.health import BUSY_MS, OVERLAP_MS, Counted, HealthAway, Turn, View, Word

PREFIX = "{surehook}:health"
PATIENCE_S = 1.0  # one call, connecting included: an exchange comes every second
# A breaker that nobody reports is forgotten after a day; an open one is probed far more often.
KEEP_S = 86_400
VIEWS_MAX = 5_000  # changes read in one exchange; more come with the next


class Told(msgspec.Struct):
    """What the script answers. Absent lists are empty (Lua cannot tell an empty list from an empty object)."""

    since: int
    views: list[View] = []
    sharers: list[int] = []


class RedisHealth:
    """Implements ports.health.Health."""

    def __init__(self, url: str) -> None:
        self._redis: Redis = Redis.from_url(
            url,
            socket_timeout=PATIENCE_S,
            socket_connect_timeout=PATIENCE_S,
            retry=Retry(NoBackoff(), 0),  # an exchange is not repeated: counts would be added twice
            max_connections=4,
        )
        self._exchange = self._redis.register_script(_source("exchange"))
        self._take_probe = self._redis.register_script(_source("take_probe"))

    async def open(self) -> None:
        await self._asked(cast("Awaitable[Any]", self._redis.ping()))

    async def close(self) -> None:
        await self._redis.aclose()

    async def exchange(
        self,
        *,
        node: bytes,
        counted: Sequence[Counted],
        turns: Sequence[Turn],
        busy: Sequence[bytes],
        since: int,
        now: int,
    ) -> Word:
        ask = {
            "node": node.hex(), "now": now, "since": since, "buckets": BUCKETS, "busy_ms": BUSY_MS,
            "overlap_ms": OVERLAP_MS, "keep_s": KEEP_S, "views": VIEWS_MAX, "turns": turns, "counted": counted,
            "busy": [endpoint.hex() for endpoint in busy],
        }  # fmt: skip
        answer = await self._asked(self._exchange(keys=[PREFIX], args=[msgspec.json.encode(ask)]))
        try:
            told = msgspec.json.decode(answer, type=Told, strict=False)
        except (msgspec.MsgspecError, TypeError) as error:
            raise HealthAway(f"Redis answered what no exchange answers: {error}") from None
        return Word(
            views=[msgspec.structs.replace(view, reason=view.reason or None) for view in told.views],
            sharers=dict(zip(busy, told.sharers, strict=False)),
            since=told.since,
        )

    async def take_probe(self, tenant: str, key: str, *, node: bytes, until: int, now: int) -> bool:
        place = f"{PREFIX}:{tenant}|{key}"
        return bool(
            await self._asked(self._take_probe(keys=[place], args=[node.hex(), now, until, OVERLAP_MS]))
        )

    @staticmethod
    async def _asked(call: Awaitable[Any]) -> Any:
        try:
            return await call
        except (RedisError, OSError, TimeoutError) as error:
            raise HealthAway(f"Redis: {said(error)}") from None


def _source(name: str) -> str:
    return files("surehook.health").joinpath("scripts", f"{name}.lua").read_text(encoding="utf-8")
