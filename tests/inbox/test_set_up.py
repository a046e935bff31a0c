"""The set-up of docs/inbox.md and docs/receiving.md, followed word by word."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from msgspec import structs
from sqlalchemy import text

import surehook
from surehook.inbox import AsyncInbox, Inbox, Rules
from surehook.inbox.receive import IncomingRequest
from surehook.inbox.rules import TIMEOUT_S
from surehook.inbox.sql.engines import DRIVERS
from tests.docs.pages import ROOT, examples, function, section
from tests.inbox.house import SECRET, Clock
from tests.inbox.signers import NOW, hex_of
from tests.inbox.signers import SECRET as TEXT
from tests.inbox.test_inbox_page import BODY, NEW, headers, ran

PAGE = "docs/inbox.md"
SET_UP = section(PAGE, "Set-up")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# What each row of the table is for, in a process that has nothing but what the row names.
USES = {
    "`surehook.verify`, `surehook.inbox.sources`": (
        "import surehook; from surehook.inbox import sources; from surehook.verify import sign\n"
        "sources.named('stripe', secret='s')"
    ),
    "`Inbox`": "from surehook.inbox import Inbox; Inbox('sqlite://').create_tables()",
    "`AsyncInbox`": (
        "import asyncio; from surehook.inbox import AsyncInbox\n"
        "async def go():\n"
        "    inbox = AsyncInbox('sqlite://')\n"
        "    await inbox.create_tables()\n"
        "    await inbox.close()\n"
        "asyncio.run(go())"
    ),
    "the commands `surehook inbox …`": (
        "import sys; from surehook.cli.main import run; sys.exit(run(['inbox', 'ddl', '--dialect', 'sqlite']))"
    ),
    "`inbox.metrics()`, `inbox.collector()`": (
        "from surehook.inbox import Inbox; inbox = Inbox('sqlite://'); inbox.create_tables(); inbox.metrics()"
    ),
    "Django": (
        "from django.conf import settings\n"
        "settings.configure(INSTALLED_APPS=['surehook.inbox.django'], SUREHOOK_INBOX={'sources': []},"
        " DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}})\n"
        "import django; django.setup(); from surehook.inbox.django import inbox; inbox.view"
    ),
}  # fmt: skip


def rows() -> dict[str, tuple[str, str]]:
    """The table of what to install: for what → package and drivers."""
    found = re.findall(r"^\| (.+?) \| `(surehook.*?)` \| (.+?) \|$", SET_UP, re.MULTILINE)
    return {use: (package, driver) for use, package, driver in found}


def module(requirement: str) -> str:
    return re.split(r"[\[>=<;]", requirement)[0].replace("-", "_")


def brought(extras: list[str]) -> set[str]:
    """The modules that these extras bring."""
    return {module(one) for extra in extras for one in PROJECT["optional-dependencies"][extra]}


@pytest.mark.parametrize("use", USES)
def test_what_the_table_names_is_enough(use: str) -> None:
    package, _ = rows()[use]
    extras = re.findall(r"[a-z]+", package.partition("[")[2])
    missing = brought(list(PROJECT["optional-dependencies"])) - brought(extras)
    blocked = "".join(f"sys.modules[{one!r}] = None\n" for one in sorted(missing))
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys\n{blocked}{USES[use]}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_the_table_has_every_use_and_the_drivers_that_urls_choose() -> None:
    assert set(rows()) == set(USES)
    for use, kind in (("`Inbox`", 0), ("`AsyncInbox`", 1)):
        named = set(re.findall(r"`(\w+)", rows()[use][1].lower()))
        chosen = {pair[kind].partition("+")[2] for pair in DRIVERS.values()} - {"pysqlite"}
        assert named == chosen


def test_the_table_of_rules_says_what_rules_are() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", SET_UP, re.MULTILINE))
    known = {name: str(value) for name, value in structs.asdict(Rules()).items()}
    assert told == {**known, "timeout_s": f"{TIMEOUT_S:g}"}


def test_a_lifespan_of_ones_own_makes_tables_and_begins_the_workers(tmp_path) -> None:
    scope = ran("lifespan", url=f"sqlite:///{tmp_path / 'app.db'}")
    inbox, app = scope["inbox"], scope["app"]
    done = []

    @inbox.on("yousign")
    async def handle(event, tx):
        done.append(event.id)

    async def go() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as client:
            async with app.router.lifespan_context(app), asyncio.timeout(10):
                assert len(inbox.pool.members) == 4
                assert (await client.post("/hooks/yousign", content=BODY, headers=headers(NEW))).is_success
                while not done:  # noqa: ASYNC110 (another task appends it)
                    await asyncio.sleep(0)
        assert not inbox.pool.members
        await inbox.close()

    asyncio.run(go())
    assert done == ["e1"]


@pytest.mark.parametrize("kind", [Inbox, AsyncInbox])
def test_an_inbox_of_either_kind_runs_as_many_workers_as_are_asked_for(kind: Any, tmp_path) -> None:
    async def go() -> None:
        inbox = kind(f"sqlite:///{tmp_path / 'app.db'}")
        if (made := inbox.create_tables()) is not None:
            await made
        for manager, count in ((inbox.running(workers=3), 3), (inbox.lifespan(), 1)):
            async with manager:
                assert len(inbox.pool.members) == count
            assert not inbox.pool.members
        if (closed := inbox.close()) is not None:
            await closed

    asyncio.run(go())


def test_handlers_of_one_event_share_its_fate(tmp_path) -> None:
    clock = Clock()
    source = surehook.inbox.sources.named("yousign", secret=NEW)
    inbox = Inbox(f"sqlite:///{tmp_path / 'app.db'}", [source], clock=clock)
    inbox.create_tables()
    with inbox.store.engine.begin() as connection:
        connection.execute(text("create table archive (id varchar(20))"))
        connection.execute(text("create table contracts (state varchar(20))"))
    fails = [True]

    def check(event: Any) -> None:
        assert not fails, "not yet"

    exec(compile(examples(PAGE)["fate"], PAGE, "exec"), {"inbox": inbox, "text": text, "check": check})
    inbox.receive(_done())

    def archived() -> int:
        inbox.work()
        with inbox.store.engine.begin() as connection:
            return int(connection.execute(text("select count(*) from archive")).scalar_one())

    assert archived() == 0
    fails.clear()
    clock.passes(60)
    assert archived() == 1
    inbox.close()


def _done() -> IncomingRequest:
    return IncomingRequest(
        method="POST", source="yousign", query="", url="http://app/hooks/yousign",
        headers=[(name.lower(), value) for name, value in headers(NEW).items()], peer="", body=BODY,
    )  # fmt: skip


def test_the_example_of_sign_is_believed() -> None:
    headers_of: Callable[..., Any] = function("docs/receiving.md", "sign", "headers_of")
    body = b'{"type":"a.b"}'
    assert surehook.verify("standard", body, headers_of(body, SECRET), SECRET).id == "evt_1"


def test_slack_is_its_events_api_only() -> None:
    body = b"command=%2Fsign&text=doc_1"
    made = {
        "x-slack-request-timestamp": str(NOW),
        "x-slack-signature": "v0=" + hex_of(TEXT, b"v0:%d:" % NOW + body),
    }
    with pytest.raises(surehook.VerifyError) as caught:
        surehook.verify("slack", body, made, TEXT, now=NOW)
    assert caught.value.code == "malformed"
