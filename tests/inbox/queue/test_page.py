"""What docs/inbox.md says of a queue: its example runs, and its figures are those of the code."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx

from surehook.inbox import Queue
from surehook.inbox.queue.mover import REFUSED_MOST
from surehook.inbox.queue.option import MOST_BYTES
from surehook.inbox.queue.packing import LARGE_BYTES, REQUESTS
from surehook.inbox.queue.port import CONFIRM_S
from surehook.inbox.queue.publisher import AWAY_S
from surehook.inbox.queue.redis import ABANDONED_MS
from tests import servers
from tests.docs.pages import section
from tests.inbox.test_inbox_page import BODY, NEW, PAGE, headers, prepare, ran

SECTION = "A queue in front"


def test_the_example_receives_into_the_queue_and_processes(tmp_path: Path) -> None:
    server = servers.Redis.new(keeping=True, always=True)
    url = f"sqlite:///{tmp_path / 'app.db'}"
    prepare(url)
    scope = ran("queue", url=url, BROKER=server.url)
    inbox, app = scope["inbox"], scope["app"]
    heard = asyncio.Event()

    @inbox.on("yousign")
    async def done(event: object, tx: object) -> None:
        heard.set()

    async def go() -> None:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            answer = await client.post("/hooks/yousign", content=BODY, headers=headers(NEW))
            assert (answer.status_code, inbox.watch.queued) == (200, {"yousign": 1})
        async with app.router.lifespan_context(app), asyncio.timeout(10):
            await heard.wait()
        await inbox.close()

    try:
        asyncio.run(go())
    finally:
        server.close()


def test_the_table_of_its_choices_is_that_of_the_code() -> None:
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", section(PAGE, SECTION), re.MULTILINE)
    listed = {name: told.strip().strip("`") for name, told in rows if name != "Queue"}
    assert listed == {"url": "", "name": Queue("redis://host").name, "most_bytes": "1 GiB"}
    assert tuple(listed) == Queue.__struct_fields__
    assert MOST_BYTES == 1 << 30


def test_the_figures_are_those_of_the_code() -> None:
    told = section(PAGE, SECTION)
    for words in (
        f"over {LARGE_BYTES // 1024} KiB",
        f"up to {REQUESTS} requests",
        f"after {CONFIRM_S:g} seconds",
        f"after {ABANDONED_MS // 1000} seconds on Redis",
        f"after {AWAY_S[0]:g} to {AWAY_S[1]:g} seconds",
    ):
        assert words in told
    assert REFUSED_MOST == 5
    assert "refuses it five times" in told
