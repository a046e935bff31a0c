"""The queue as a stream of Redis with a consumer group.

A stream is as durable as its server is set to be, so that is looked at on each new connection. From Redis 7.2 on each batch is
followed by WAITAOF, which answers when it is on the disk, whatever `appendfsync` says; before, `appendfsync always` is the one
setting under which an answer means that. A replica is not waited for: a failover to one may lose what was confirmed last.

The stream's bytes are counted in a key beside it, within the same scripts: nothing of Redis tells them at once. It has no
MAXLEN, which would trim what nobody has read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.resources import files
from typing import Any

from redis.asyncio import Redis
from redis.asyncio.connection import parse_url
from redis.backoff import NoBackoff
from redis.exceptions import OutOfMemoryError, RedisError, ResponseError
from redis.retry import Retry

from surehook.core.errors import said
from surehook.inbox.queue.port import CONFIRM_S, CONNECT_S, Length, QueueAway, QueueMessage, QueueUnfit

GROUP = "movers"
ABANDONED_MS = 30_000  # until what a taker holds is given to another: it died, or its commits take very long
LOOK_S = 5.0  # between two looks for what others abandoned
FORGET_MS = 3_600_000  # a taker that has been away so long, and holds nothing
ANSWER_S = 10.0  # for a taker, which nobody waits for; doors have CONFIRM_S
WAITING = (7, 2)  # the version that has WAITAOF


def script(name: str) -> str:
    return files("surehook.inbox.queue").joinpath("scripts", f"{name}.lua").read_text(encoding="utf-8")


PUT, DONE, SWEEP = script("put"), script("done"), script("sweep")


class Keys:
    """The names in Redis. One hash tag, so that a cluster keeps them together."""

    def __init__(self, name: str) -> None:
        self.stream = f"{{{name}}}"
        self.bytes = f"{{{name}}}:bytes"
        self.aside = f"{{{name}}}:aside"


class RedisQueue:
    """`port.Broker` on one URL. Raises ValueError for one that cannot be read."""

    def __init__(self, url: str, name: str, most_bytes: int) -> None:
        parse_url(url)
        self._url, self._keys, self._most_bytes = url, Keys(name), most_bytes

    async def publisher(self) -> RedisPublisher:
        client = self._client()
        async with _opening(client):
            return RedisPublisher(client, self._keys, self._most_bytes, waits=await _waits(client))

    async def consumer(self, taker: str) -> RedisConsumer:
        client = self._client()
        async with _opening(client):
            with suppress(ResponseError):  # it is there already; if it is not, taking says so
                await client.xgroup_create(self._keys.stream, GROUP, id="0", mkstream=True)
            await client.eval(SWEEP, 1, self._keys.stream, GROUP, FORGET_MS)
            return RedisConsumer(client, self._keys, taker)

    def _client(self) -> Redis:
        return Redis.from_url(
            self._url,
            protocol=2,
            socket_timeout=ANSWER_S,
            socket_connect_timeout=CONNECT_S,
            retry=Retry(NoBackoff(), 0),  # what to do again, and on what, is the caller's to say
            max_connections=1,
        )


class RedisPublisher:
    """`port.BrokerPublisher`. `waits`: WAITAOF says when it is on the disk; else the answer itself does."""

    def __init__(self, client: Redis, keys: Keys, most_bytes: int, *, waits: bool) -> None:
        self._client, self._keys, self._most_bytes, self._waits = client, keys, most_bytes, waits

    async def put(self, bodies: Sequence[bytes]) -> list[bool]:
        keys = self._keys
        async with _asked():
            pipe = self._client.pipeline(transaction=False)
            pipe.eval(PUT, 2, keys.stream, keys.bytes, self._most_bytes, *bodies)
            if self._waits:
                pipe.execute_command("WAITAOF", 1, 0, round(CONFIRM_S * 1000))
            async with asyncio.timeout(CONFIRM_S):
                found = await pipe.execute(raise_on_error=False)
        if isinstance(found[0], OutOfMemoryError) or "OOM" in str(found[0])[:64]:
            return [False] * len(bodies)
        for each in found:
            if isinstance(each, Exception):
                raise QueueAway(f"Redis: {said(each)}")
        if self._waits and found[1][0] < 1:
            raise QueueAway(f"Redis did not have it on its disk within {CONFIRM_S:g} s")
        return [each == 1 for each in found[0]]

    async def close(self) -> None:
        await _closed(self._client)


class RedisConsumer:
    """`port.BrokerConsumer`."""

    def __init__(self, client: Redis, keys: Keys, taker: str) -> None:
        self._client, self._keys, self._taker = client, keys, taker
        # First its own from an earlier connection, by their ids, and then `>`: what nobody was given.
        self._from = "0"
        self._looked: float | None = None

    async def take(self, limit: int, *, wait_s: float) -> list[QueueMessage]:
        async with _asked():
            if self._from != ">":
                if own := await self._read(limit, 0):
                    self._from = own[-1].tag
                    return own
                self._from = ">"
            return await self._abandoned(limit) or await self._read(limit, wait_s)

    async def _read(self, limit: int, wait_s: float) -> list[QueueMessage]:
        found: Any = await self._client.xreadgroup(
            GROUP,
            self._taker,
            {self._keys.stream: self._from},
            count=limit,
            block=round(wait_s * 1000) or None,
        )
        return _messages(found[0][1]) if found else []

    async def _abandoned(self, limit: int) -> list[QueueMessage]:
        """Claim the messages of a consumer that has not been heard of."""
        now = asyncio.get_running_loop().time()
        if self._looked is not None and now - self._looked < LOOK_S:
            return []
        self._looked = now
        found: Any = await self._client.xautoclaim(
            self._keys.stream, GROUP, self._taker, min_idle_time=ABANDONED_MS, start_id="0-0", count=limit
        )
        claimed = _messages(found[1])
        if len(claimed) == limit:
            self._looked = None  # there may be more
        return claimed

    async def done(self, messages: Sequence[QueueMessage]) -> None:
        if messages:
            await self._out("", [part for one in messages for part in (one.tag, len(one.body))])

    async def aside(self, message: QueueMessage, reason: str) -> None:
        await self._out(reason or "unknown", [message.tag, message.body])

    async def _out(self, reason: str, parts: Sequence[str | bytes | int]) -> None:
        keys = self._keys
        async with _asked():
            asked: Any = self._client.eval(
                DONE, 3, keys.stream, keys.bytes, keys.aside, GROUP, reason, *parts
            )
            await asked

    async def length(self) -> Length:
        async with _asked():
            return Length(
                await self._client.xlen(self._keys.stream), await self._client.xlen(self._keys.aside)
            )

    async def close(self) -> None:
        await _closed(self._client)


def _messages(entries: Iterable[tuple[bytes, dict[bytes, bytes] | None]]) -> list[QueueMessage]:
    """Read the messages that have a body; one that somebody deleted meanwhile has none."""
    return [QueueMessage(tag, fields.get(b"body", b"")) for tag, fields in entries if fields]


async def _waits(client: Redis) -> bool:
    """Tell whether to ask for WAITAOF. Raises QueueUnfit where a confirm would not mean that it is on the disk."""
    info: Any = await client.info()
    if info["aof_enabled"] != 1:
        raise QueueUnfit("Redis has its streams in memory alone: set `appendonly yes`")
    if info["maxmemory_policy"] != "noeviction":
        raise QueueUnfit("Redis may evict what it confirmed: set `maxmemory-policy noeviction`")
    version = tuple(int(part) for part in str(info["redis_version"]).split(".")[:2])
    if version >= WAITING:
        return True
    settings: Any = await client.config_get("*appendfsync*")
    if settings.get("appendfsync") != "always" or settings.get("no-appendfsync-on-rewrite") != "no":
        raise QueueUnfit(
            "Redis before 7.2 does not say when something is on its disk: set `appendfsync always` and "
            "`no-appendfsync-on-rewrite no`, or take a newer one"
        )
    return False


@asynccontextmanager
async def _opening(client: Redis) -> AsyncIterator[None]:
    """Run the first commands on a connection, and close it if they fail."""
    try:
        async with _asked(), asyncio.timeout(CONNECT_S):
            yield
    except BaseException:
        await _closed(client)
        raise


@asynccontextmanager
async def _asked() -> AsyncIterator[None]:
    try:
        yield
    except TimeoutError:
        raise QueueAway("Redis does not answer") from None
    except (RedisError, OSError) as error:
        raise QueueAway(f"Redis: {said(error)}") from None


async def _closed(client: Redis) -> None:
    with suppress(RedisError, OSError, RuntimeError):  # RuntimeError: its event loop has ended before it
        await client.aclose()
