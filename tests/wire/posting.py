"""A client on loopback, and one attempt awaited."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

from surehook.ports.resolver import Resolved
from surehook.ports.transport import Answer, Request
from surehook.wire.client import WireClient
from surehook.wire.connection import Connection
from surehook.wire.settings import WireSettings

LOOPBACK = ("127.0.0.0/8", "::1/128")
# Trusts nobody, and is made once: reading the system's takes long.
NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
BODY = b'{"id":"evt_1"}'


class BootClock:
    def boot(self) -> float:
        return time.monotonic()


class Names:
    """A resolver that knows what it was told; lists of answers are given in turn, and nothing is cached then."""

    def __init__(self, answers: Mapping[str, tuple[str, ...] | list[tuple[str, ...]] | str]) -> None:
        self.answers = dict(answers)
        self.asked: list[str] = []
        self._kept: dict[str, Resolved] = {}

    def cached(self, host: str) -> Resolved | None:
        return self._kept.get(host)

    async def resolve(self, host: str) -> Resolved:
        self.asked.append(host)
        found = self.answers.get(host, "dns_nxdomain")
        if isinstance(found, str):
            return Resolved(failure=found)
        if isinstance(found, list):
            return Resolved(found[(len(self.asked) - 1) % len(found)])
        resolved = self._kept[host] = Resolved(found)
        return resolved

    async def close(self) -> None:
        return


def client(*, names: Mapping[str, Any] | None = None, **settings: Any) -> WireClient:
    dialer = settings.pop("dialer", None)
    clock = settings.pop("clock", BootClock())
    connection = settings.pop("connection", Connection)
    context = settings.pop("context", None if "ca_file" in settings else NOBODY)
    settings = {"allow_http": True, "allow_networks": LOOPBACK} | settings
    return WireClient(
        clock=clock,
        resolver=Names(names or {}),
        dialer=dialer,
        settings=WireSettings(**settings),
        context=context,
        connection=connection,
    )


async def until(condition: Callable[[], object]) -> None:
    """Let the loop turn until something holds that no event tells of; at most two seconds."""
    async with asyncio.timeout(2):
        while not condition():  # noqa: ASYNC110 (what is waited for is a state of the code under test)
            await asyncio.sleep(0)


async def post(wire: WireClient, url: str, **request: Any) -> Answer:
    """Send one request and wait for its answer."""
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    fields: dict[str, Any] = {
        "target": wire.stored(url, tenant=request.pop("tenant", "acme"), tls=request.pop("tls", None)),
        "headers": b"content-type: application/json\r\n",
        "body": BODY,
        "timeout_s": 2.0,
        "connect_timeout_s": 2.0,
    } | request
    is_inside = True

    def done(answer: Answer) -> None:
        assert not is_inside, "done is never called from inside send"
        assert not answered.done(), "done is called once"
        answered.set_result(answer)

    wire.send(Request(**fields), done)
    is_inside = False
    async with asyncio.timeout(fields["timeout_s"] + 5):  # a test of deadlines must not depend on them to end
        return await answered
