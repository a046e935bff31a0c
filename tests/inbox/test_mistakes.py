"""What people do wrong in their first hour, and the one line that each of them gets: its cause, in a word of theirs, and what to
do next. Nothing here is made up: real databases, real frameworks, real processes."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from msgspec.structs import replace
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import create_async_engine

import surehook
from surehook.core.errors import SurehookError
from surehook.inbox import AsyncInbox, Backoff, Inbox, Keep, Refuse, Rules, sources
from surehook.inbox.testing import Trial
from surehook.inbox.workflow import SIGNING, Fields, Table, Workflow
from tests import servers
from tests.inbox.house import SECRET, call, message, partner

OTHER = "whsec_" + "YmJi" * 11
OLD, NEW = OTHER, SECRET


class Scene:
    """Where a mistake is made: a folder, the log, and inboxes with one source, `partner`, which end with the scene."""

    def __init__(self, folder: Path, log: pytest.LogCaptureFixture) -> None:
        self.folder, self._log = folder, log
        self._made: list[Inbox] = []

    def inbox(self, url: str | None = None, *, tables: bool = True, **choices: Any) -> Inbox:
        given = choices.pop("sources", None) or [partner()]
        inbox = Inbox(url or f"sqlite:///{self.folder / 'app.db'}", given, **choices)
        self._made.append(inbox)
        if tables:
            inbox.create_tables()
        return inbox

    def takes(self, inbox: Inbox, **choices: Any) -> int:
        """Hand in one message; the status of the answer."""
        return inbox.receive(call(*message("evt_1"), at=inbox.clock.now(), **choices)).status

    def handles(self, handler: Any) -> str:
        """What the log says of a handler at work."""
        inbox = self.inbox()
        inbox.on("partner")(handler)
        assert self.takes(inbox) == 200
        inbox.work()
        return self.logged()

    def logged(self) -> str:
        """The one line that is new in the log; of a traceback its last."""
        ((said),) = [one.getMessage() for one in self._log.records if one.name == "surehook.inbox"]
        self._log.clear()
        return said.splitlines()[-1]

    def away(self, url: str) -> str:
        """What the log says when one message comes to an inbox with this database."""
        assert self.takes(self.inbox(url, tables=False)) == 503
        return self.logged()

    def shell(self, *words: str, shop: str = "") -> str:
        """What a command says on stderr, in a folder with the module `shop`; the hint stands beneath the error."""
        (self.folder / "shop.py").write_text(f"from surehook.inbox import Inbox, sources\n{shop}\n")
        ran = subprocess.run(
            [sys.executable, "-m", "surehook", *words],
            cwd=self.folder, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert ran.returncode > 0
        assert "until SIGTERM" not in ran.stderr, "nothing is said to have begun that is refused"
        error, hint = ran.stderr.strip().splitlines()[-2:]
        return f"{error}; {hint}"

    def without(self, module: str, code: str) -> str:
        """What is raised by a process in which a package is missing."""
        blocked = f"import sys\nsys.modules[{module!r}] = None\n{code}"
        ran = subprocess.run(
            [sys.executable, "-c", blocked],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return _joined(ran.stderr.strip().splitlines()[-2:])

    def end(self) -> None:
        for inbox in self._made:
            inbox.close()


def _joined(lines: list[str]) -> str:
    """An error and, where its last line is a hint, that."""
    return "; ".join(lines) if lines[-1].startswith("  hint: ") else lines[-1]


def of(error: BaseException) -> str:
    """As people read it: sentence, and hint beneath."""
    named = getattr(error, "key", None) or getattr(error, "field", None) or getattr(error, "code", "")
    return f"{named}: {getattr(error, 'detail', error)}; {getattr(error, 'hint', '')}"


def raised(do: Callable[[], object]) -> str:
    with pytest.raises(SurehookError) as caught:
        do()
    return of(caught.value)


def answer(app: Any, path: str, **choices: Any) -> httpx.Response:
    """What an ASGI application answers to a POST."""

    async def go() -> httpx.Response:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app), base_url="http://shop", follow_redirects=True
        ) as client:
            return await client.post(path, content=b"{}", **choices)

    return asyncio.run(go())


# -- doing it ---------------------------------------------------------------------------------------------------


def moved(event: Any, tx: Any) -> None: ...


async def later(event: Any, tx: Any) -> None: ...


def yields(event: Any, tx: Any) -> Any:
    yield


class Service:
    async def __call__(self, event: Any, tx: Any) -> None: ...


def fastapi_at(scene: Scene, mount: str, path: str) -> str:
    from fastapi import FastAPI

    app = FastAPI()
    app.mount(mount, scene.inbox().asgi())
    reply = answer(app, path)
    assert (reply.status_code, reply.json()["code"]) == (404, "unknown_source")
    assert "partner" not in reply.json()["detail"], "strangers are told no names"
    return scene.logged()


def flask_at(scene: Scene, path: str) -> str:
    from flask import Flask
    from werkzeug.middleware.dispatcher import DispatcherMiddleware

    app = Flask("shop")
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/hooks": scene.inbox().wsgi()})  # type: ignore[method-assign]
    reply = app.test_client().post(path, data=b"{}")
    assert (reply.status_code, reply.json["code"]) == (404, "unknown_source")
    return scene.logged()


def the_answer_of_a_wrong_mount(scene: Scene) -> str:
    return str(answer(scene.inbox().asgi(), "/hooks/partner").json()["detail"])


def other_secret(scene: Scene) -> str:
    inbox = scene.inbox()
    reply = inbox.receive(call(*message("evt_1"), at=inbox.clock.now(), secret=OTHER))
    assert (reply.status, b"secret" in reply.body) == (401, False), "a stranger learns nothing"
    said = scene.logged()
    assert inbox.samples("partner")[0].detail in said
    return said


def retired_key(scene: Scene) -> str:
    keys = [NEW, sources.Key(OLD, not_after=1)]
    inbox = scene.inbox(sources=[sources.named("standard", name="partner", secret=keys)])
    assert scene.takes(inbox, secret=OLD) == 401
    return scene.logged()


def parsed_first(scene: Scene) -> str:
    came = call(*message("evt_1", amount=1.0), at=scene.inbox().clock.now())
    again = json.dumps(json.loads(came.body), separators=(",", ":")).encode()
    return raised(lambda: surehook.verify("standard", again, came.headers, SECRET))


def no_tables(scene: Scene) -> str:
    with servers.postgres().database() as url:
        return scene.away(url)


def changed(**parts: Any) -> str:
    return make_url(servers.postgres().url()).set(**parts).render_as_string(hide_password=False)


def without_rights(scene: Scene) -> str:
    with servers.postgres().database() as url:
        scene.inbox(url)
        servers.postgres().ask("drop role if exists meek; create role meek login")
        return scene.away(make_url(url).set(username="meek").render_as_string(hide_password=False))


def without_login(scene: Scene, do: Callable[[str], str]) -> str:
    servers.postgres().ask("drop role if exists shut; create role shut nologin")
    return do(changed(username="shut"))


def refuses(event: Any, tx: Any) -> None:
    raise Refuse("Not a code! At all")


def swallows(event: Any, tx: Any) -> None:
    with suppress(DBAPIError):
        tx.execute(text("select nothing"))


async def swallows_later(event: Any, tx: Any) -> None:
    with suppress(DBAPIError):
        await tx.execute(text("select nothing"))


def goes_on(event: Any, tx: Any) -> None:
    swallows(event, tx)
    tx.execute(text("select 1"))


def on_postgres(scene: Scene, handler: Any) -> str:
    """What the log says of a handler at work on PostgreSQL."""
    with servers.postgres().database() as url:
        inbox = scene.inbox(url)
        inbox.on("partner")(handler)
        assert scene.takes(inbox) == 200
        inbox.work()
        return scene.logged()


def on_asyncpg(scene: Scene, handler: Any) -> str:
    async def go(url: str) -> None:
        inbox = AsyncInbox(url, [partner()])
        await inbox.create_tables()
        inbox.on("partner")(handler)
        await inbox.receive(call(*message("evt_1"), at=inbox.clock.now()))
        await inbox.work()
        await inbox.close()

    with servers.postgres().database() as url:
        asyncio.run(go(url))
    return scene.logged()


def wrong_password(scene: Scene) -> str:
    with servers.mariadb().database() as url:
        return scene.away(make_url(url).set(password="no").render_as_string(hide_password=False))


def not_imported(scene: Scene) -> str:
    inbox = scene.inbox()
    inbox.on("partner", "document.singed")(moved)
    assert scene.takes(inbox) == 200
    inbox.work()
    return scene.logged()


def follow_each(scene: Scene, *workflows: Workflow | Table) -> None:
    inbox = scene.inbox()
    for one in workflows:
        inbox.follow(one, "partner")


def forgot_await(scene: Scene) -> str:
    async def go() -> None:
        inbox = AsyncInbox(f"sqlite:///{scene.folder / 'app.db'}", [partner()])
        await inbox.create_tables()

        @inbox.on("partner")
        async def reads(event: Any, tx: Any) -> int:
            rows = tx.execute(text("select 1"))
            try:
                return int(rows.scalar())
            finally:
                rows.close()  # or Python warns beside, as it should

        await inbox.receive(call(*message("evt_1"), at=inbox.clock.now()))
        await inbox.work()
        await inbox.close()

    asyncio.run(go())
    return scene.logged()


class Mistake(NamedTuple):
    did: str
    do: Callable[[Scene], str]
    cause: str  # a word of theirs that is in the line
    step: str  # what to do, in the line as well


MISTAKES = [
    # -- sources
    Mistake("misspelt the source of a handler", lambda s: raised(lambda: s.inbox().on("partnr")), "'partnr'", "mean 'partner'"),
    Mistake("misspelt the source of a workflow", lambda s: raised(lambda: s.inbox().follow(SIGNING, "partnr")), "'partnr'", "mean 'partner'"),
    Mistake("named a workflow's table by a word", lambda s: raised(lambda: s.inbox().follow("signing", "partner")), "'signing' is not a table", "workflow.SIGNING"),
    Mistake("followed a table by two workflows", lambda s: raised(lambda: follow_each(s, SIGNING, Workflow(SIGNING))), "'signing' has this table already", "make one Workflow"),
    Mistake("followed two tables of one type", lambda s: raised(lambda: follow_each(s, SIGNING, replace(SIGNING, version="3"))), "this one is signing 3 ", "a type of its own"),
    Mistake("misspelt a source elsewhere", lambda s: raised(lambda: s.inbox().unpark("partnr")), "'partnr'", "mean 'partner'"),
    Mistake("wrote @inbox.on without its source", lambda s: raised(lambda: s.inbox().on(moved)), "moved", '@inbox.on("'),  # type: ignore[arg-type]
    Mistake("misspelt a provider", lambda s: raised(lambda: sources.named("strype", secret="s")), "'strype'", "mean 'stripe'"),
    Mistake("misspelt a provider in verify", lambda s: raised(lambda: surehook.verify("gihtub", b"{}", {}, "s")), "'gihtub'", "mean 'github'"),
    Mistake("misspelt an option of a source", lambda s: raised(lambda: sources.named("stripe", secret="s", tolerance=60)), "tolerance:", "mean 'tolerance_s'"),
    Mistake("misspelt an option of hmac", lambda s: raised(lambda: sources.hmac("mine", secret="s", heder="X-S")), "heder", "mean 'header'"),
    Mistake("named a provider in place of a source", lambda s: raised(lambda: Inbox("sqlite://", ["stripe"])), "str", "sources.named("),
    Mistake("gave a source in place of a list", lambda s: raised(lambda: Inbox("sqlite://", partner())), "Source", "[sources.named("),
    Mistake("gave two sources of one provider one name", lambda s: raised(lambda: Inbox("sqlite://", [partner(), partner()])), "'partner'", "name="),
    Mistake("left the secret's variable empty", lambda s: raised(lambda: sources.named("stripe", secret="")), "an empty text", "setting"),
    Mistake("copied the secret without its beginning", lambda s: raised(lambda: sources.named("standard", secret="a2tr")), "secret", "begins with whsec_"),
    # -- handlers
    Mistake("forgot tx", lambda s: raised(lambda: s.inbox().on("partner")(lambda event: None)), "<lambda>", "def handler(event, tx)"),
    Mistake("gave a coroutine to Inbox", lambda s: raised(lambda: s.inbox().on("partner")(later)), "later", "AsyncInbox(url)"),
    Mistake("gave an object that waits to Inbox", lambda s: raised(lambda: s.inbox().on("partner")(Service())), "Service", "AsyncInbox(url)"),
    Mistake("gave a generator", lambda s: raised(lambda: s.inbox().on("partner")(yields)), "yields", "return"),
    Mistake("returned what nobody awaits", lambda s: s.handles(lambda event, tx: later(event, tx)), "<lambda>", "make it `async def`"),
    Mistake("returned a cursor", lambda s: s.handles(lambda event, tx: tx.execute(text("select 1"))), "CursorResult", "return nothing"),
    Mistake("gave SQL as text", lambda s: s.handles(lambda event, tx: tx.execute("select 1")), "SQL as text", "text("),
    Mistake("used a connection as a session", lambda s: s.handles(lambda event, tx: tx.add(event)), "`add`", "sessions=True"),
    Mistake("forgot to await the transaction", forgot_await, "AsyncConnection.execute(…) was not awaited", "(await tx.execute(…)).scalar"),
    Mistake("caught an error of PostgreSQL", lambda s: on_postgres(s, swallows), "swallows: a statement before this one has failed", "tx.begin_nested()"),
    Mistake("caught an error of PostgreSQL, and asked on", lambda s: on_postgres(s, goes_on), "a statement before this one has failed", "tx.begin_nested()"),
    Mistake("caught an error of asyncpg", lambda s: on_asyncpg(s, swallows_later), "swallows_later: a statement before this one", "tx.begin_nested()"),
    Mistake("committed by hand", lambda s: s.handles(lambda event, tx: tx.commit()), "the inbox commits", "savepoints"),
    Mistake("misspelt the pattern, or did not import the module", not_imported, "document.signed of partner", "is its module imported"),
    Mistake("refused with a sentence", lambda s: raised(lambda: Refuse("Not a code! At all")), "'Not a code! At all' is no word", "a sentence comes after it"),
    Mistake("refused with a sentence in a handler", lambda s: s.handles(refuses), "a to z, 0 to 9 and _", '"wrong_amount"'),
    Mistake("wrote a pattern with half a word", lambda s: raised(lambda: s.inbox().on("partner", "doc*")(moved)), "'doc*'", "document.*"),
    Mistake("gave a handler more than half a lease", lambda s: raised(lambda: s.inbox().on("partner", timeout_s=45)(moved)), "45 seconds", "Rules(lease_ms=90000)"),
    Mistake("gave all handlers more than half a lease", lambda s: raised(lambda: Rules(timeout_s=45)), "45 seconds", "Rules(lease_ms=90000)"),
    Mistake("gave a timeout as text", lambda s: raised(lambda: Rules(timeout_s="20")), "timeout_s", "Rules(timeout_s=20)"),  # type: ignore[arg-type]
    Mistake("gave rules as a dict", lambda s: raised(lambda: Inbox("sqlite://", rules={"lease_ms": 1})), "dict", "Rules(lease_ms="),  # type: ignore[arg-type]
    Mistake("gave a batch of nothing", lambda s: raised(lambda: Rules(batch=0)), "batch", "Rules(batch=64)"),
    Mistake("gave a lease of a minute in seconds", lambda s: raised(lambda: Rules(lease_ms=60)), "lease_ms", "Rules(lease_ms=60_000)"),
    Mistake("allowed no attempt", lambda s: raised(lambda: Backoff(attempts=0)), "1 to 1,000 attempts", "Backoff(first_s="),
    # -- the database
    Mistake("made no tables", no_tables, "surehook_inbox_events", "create_tables() makes them"),
    Mistake("asked for a list without tables", lambda s: raised(s.inbox(tables=False).events), "surehook_inbox_events", "create_tables()"),
    Mistake("named a database that is not there", lambda s: s.away(changed(database="nowhere")), '"nowhere"', "correct the URL"),
    Mistake("named a role that is not there", lambda s: s.away(changed(username="ana")), '"ana"', "user or password"),
    Mistake("gave a wrong password", wrong_password, "Access denied for user", "user or password"),
    Mistake("gave a role without rights", without_rights, "permission denied for table surehook_inbox", "needs SELECT, INSERT"),
    Mistake("named a role that may not log in", lambda s: without_login(s, s.away), '"shut" is not permitted', "ALTER ROLE … LOGIN"),
    Mistake("made tables as a role that may not log in", lambda s: without_login(s, lambda url: raised(lambda: s.inbox(url))), '"shut" is not permitted', "ALTER ROLE … LOGIN"),
    Mistake("made tables as a role that is not there", lambda s: raised(lambda: s.inbox(changed(username="ana"))), '"ana"', "user or password"),
    Mistake("gave a wrong port", lambda s: s.away(changed(port=1)), "port 1", "is it running"),
    Mistake("gave a wrong host", lambda s: s.away(changed(host="nowhere.invalid")), "nowhere.invalid", "host and port"),
    Mistake("gave a folder that is not there", lambda s: s.away(f"sqlite:///{s.folder}/none/app.db"), "unable to open database file", "its folder is missing"),
    Mistake("gave a path as a URL", lambda s: raised(lambda: Inbox("app.db")), "not a database URL", "sqlite:///app.db"),
    Mistake("misspelt the database of the URL", lambda s: raised(lambda: Inbox("postgrsql://db/app")), "'postgrsql'", "mean 'postgresql'"),
    Mistake("misspelt the driver", lambda s: raised(lambda: Inbox("postgresql+psycog://db/app")), "'postgresql+psycog'", "postgresql+psycopg://"),
    Mistake("gave a driver that waits to Inbox", lambda s: raised(lambda: Inbox("postgresql+asyncpg://db/app")), "postgresql+asyncpg", "postgresql+psycopg://"),
    Mistake("gave a driver that blocks to AsyncInbox", lambda s: raised(lambda: AsyncInbox("mysql+pymysql://db/app")), "mysql+pymysql", "mysql+asyncmy://"),
    Mistake("gave an AsyncEngine to Inbox", lambda s: raised(lambda: Inbox(create_async_engine("sqlite+aiosqlite://"))), "AsyncEngine", "AsyncInbox(engine)"),  # type: ignore[arg-type]
    Mistake("gave an Engine to AsyncInbox", lambda s: raised(lambda: AsyncInbox(create_engine("sqlite://"))), "Engine", "Inbox(engine)"),  # type: ignore[arg-type]
    Mistake("left the database's variable empty", lambda s: raised(lambda: Inbox(None)), "NoneType", "is the setting empty"),  # type: ignore[arg-type]
    Mistake("left the secret's variable empty", lambda s: raised(lambda: sources.named("yousign", secret=None)), "NoneType", "or not set"),  # type: ignore[arg-type]
    Mistake("gave no retention but a mapping", lambda s: raised(lambda: Inbox("sqlite://", keep={"bodies_days": 1})), "a dict is no Keep", "Keep(bodies_days=30)"),  # type: ignore[arg-type]
    Mistake("gave a number for the waits", lambda s: raised(lambda: Inbox("sqlite://", backoff=3)), "a int is no Backoff", "Backoff(first_s=60"),  # type: ignore[arg-type]
    Mistake("gave no sources but None", lambda s: raised(lambda: Inbox("sqlite://", None)), "a list of sources, and no NoneType", "sources.named("),  # type: ignore[arg-type]
    Mistake("gave a trial the inbox's name", lambda s: raised(lambda: Trial("sqlite://", "shop.hooks:inbox")), "Inbox or AsyncInbox, and not of str", "Trial(url, inbox)"),  # type: ignore[arg-type]
    Mistake("gave a trial one source", lambda s: raised(lambda: Trial("sqlite://", None, partner())), "sources", "[sources.named("),  # type: ignore[arg-type]
    Mistake("signed for nobody", lambda s: raised(lambda: Trial("sqlite://", None, [partner()]).sign(None)), "no source None", "sources:"),  # type: ignore[arg-type]
    Mistake("signed a body that is no bytes", lambda s: raised(lambda: Trial("sqlite://", None, [partner()]).sign("partner", body="{}")), "body: a value of bytes, and not of str", "data="),  # type: ignore[arg-type]
    Mistake("signed for a number", lambda s: raised(lambda: Trial("sqlite://", None, [partner()]).sign("partner", 3)), "type: a value of str, and not of int", "invoice.paid"),  # type: ignore[arg-type]
    Mistake("sent what nobody signed", lambda s: raised(lambda: Trial("sqlite://", None, [partner()]).send({})), "what sign() has made", "trial.send(trial.sign("),  # type: ignore[arg-type]
    Mistake("kept bodies for less than nothing", lambda s: raised(lambda: Keep(bodies_days=-1)), "bodies_days", "more than 0 days"),
    Mistake("gave a hook that takes nothing", lambda s: raised(lambda: s.inbox().on_dead(lambda: None)), "on_dead", "cannot be called with (told)"),
    Mistake("gave no hook", lambda s: raised(lambda: s.inbox().observe(None)), "observe", "def observe_hook(told)"),
    Mistake("replays what waits", lambda s: raised(lambda: s.inbox().replay(reason="r", state="parked")), "only finished events", "by themselves"),
    Mistake("wrote a path of another notation", lambda s: raised(lambda: Workflow(SIGNING, fields={"yousign": Fields(document="$.data.id")})), "bad_field", "data.document.id"),
    Mistake("left a path out", lambda s: raised(lambda: Workflow(SIGNING, fields={"yousign": Fields(document=None)})), "fields.yousign.document", "dotted path"),  # type: ignore[arg-type]
    Mistake("signs with no secret at all", lambda s: raised(lambda: surehook.verify.sign([], "evt_1", b"{}")), "a secret is needed", "empty"),
    Mistake("signs a text", lambda s: raised(lambda: surehook.verify.sign(SECRET, "evt_1", "{}")), "the body is bytes", "a str"),  # type: ignore[arg-type]
    Mistake("gave a number for a type", lambda s: raised(lambda: s.inbox().on("partner", 5)(lambda event, tx: None)), "5 is not a type", "document.signed"),
    Mistake("signed with an empty variable", lambda s: raised(lambda: surehook.verify.sign(None, "evt_1", b"{}")), "NoneType", "come"),  # type: ignore[arg-type]
    # -- extras
    Mistake("has no driver", lambda s: s.without("psycopg", "from surehook.inbox import Inbox; Inbox('postgresql://db/app')"), "psycopg", "pip install 'psycopg[binary]'"),
    Mistake("has not the extra `inbox`", lambda s: s.without("sqlalchemy", "from surehook.inbox import Inbox"), "sqlalchemy", "pip install 'surehook[inbox]'"),
    Mistake("has not the extra `metrics`", lambda s: s.without("prometheus_client", "from surehook.inbox import Inbox; Inbox('sqlite://').collector()"), "prometheus", "pip install 'surehook[inbox,metrics]'"),
    Mistake("has not the extra of the command", lambda s: s.without("typer", "from surehook.__main__ import main; main()"), "hint", "pip install 'surehook[server]'"),
    # -- what comes in
    Mistake("forgot the source in the address", lambda s: fastapi_at(s, "/hooks", "/hooks"), "POST http://shop/hooks", "sources: partner"),
    Mistake("has the prefix twice", lambda s: fastapi_at(s, "/hooks", "/hooks/hooks/partner"), "'hooks/partner'", "sources: partner"),
    Mistake("misspelt the source in the address", lambda s: flask_at(s, "/hooks/partnr"), "'partnr'", "sources: partner"),
    Mistake("reads the answer to a wrong address", the_answer_of_a_wrong_mount, "no such source at this address", "the source's name"),
    Mistake("took the secret of another endpoint", other_secret, "any of the secrets given (1)", "this very endpoint"),
    Mistake("has retired the old secret before its sender did", retired_key, "a key that does not hold now", "rotate"),
    Mistake("verified what had been parsed and written again", parsed_first, "secrets given", "before any parsing"),
    Mistake("verified a parsed body", lambda s: raised(lambda: surehook.verify("standard", {}, {}, SECRET)), "a dict", "await request.body()"),  # type: ignore[arg-type]
    # -- looks, and the command line
    Mistake("misspelt a filter", lambda s: raised(lambda: s.inbox().events(sorce="partner")), "sorce", "mean 'source'"),
    Mistake("misspelt a state", lambda s: raised(lambda: s.inbox().events(state="deed")), "'deed'", "mean 'dead'"),
    Mistake("asked for what failed", lambda s: raised(lambda: s.inbox().events(state="failed")), "'failed'", "`dead` has failed and is given up, `accepted` waits, also to be tried again; states: accepted, dead, finalized"),
    Mistake("asked for a state that there is not", lambda s: raised(lambda: s.inbox().events(state="broken")), "'broken'", "states: accepted, dead, finalized"),
    Mistake("misspelt a filter of a replay", lambda s: raised(lambda: s.inbox().replay(reason="r", tpye="a.b")), "tpye", "mean 'type'"),
    Mistake("replayed without saying what", lambda s: raised(lambda: s.inbox().replay(reason="r")), "replay", "source=, type="),
    Mistake("wrote a day for an instant", lambda s: raised(lambda: s.inbox().events(since="yesterday")), "since", "such as 2026-"),
    Mistake("finalized the sender's id", lambda s: raised(lambda: s.inbox().finalize("evt_1")), "'evt_1'", "event.ref"),
    Mistake("misspelt the module of a command", lambda s: s.shell("inbox", "work", "shp:inbox"), "'shp'", "run it in the folder"),
    Mistake("named a file", lambda s: s.shell("inbox", "work", "shop.py:inbox"), "'shop.py'", "a module and no file"),
    Mistake("misspelt the inbox of a command", lambda s: s.shell("inbox", "work", "shop:inbx", shop="inbox = Inbox('sqlite://')"), "inbx", "mean 'inbox'"),
    Mistake("named a function that makes one", lambda s: s.shell("inbox", "status", "shop:make", shop="def make(): return Inbox('sqlite://')"), "make of shop is a function", "inboxes of shop: none"),
    Mistake("has a module that fails", lambda s: s.shell("inbox", "work", "shop:inbox", shop="import os; os.environ['SHOP_SECRET']"), "KeyError: 'SHOP_SECRET'", "environment"),
    Mistake("started workers without handlers", lambda s: s.shell("inbox", "work", "shop:inbox", shop="inbox = Inbox('sqlite://')"), "has no handler", "import it"),
]  # fmt: skip


@pytest.fixture
def scene(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.WARNING, "surehook.inbox")
    scene = Scene(tmp_path, caplog)
    yield scene
    scene.end()


def each(mistakes: Sequence[Mistake], *slow: Callable[[Scene], str]) -> pytest.MarkDecorator:
    """A test of each; those that do `slow` start a database of another kind."""
    marked = [
        pytest.param(one, id=one.did, marks=pytest.mark.slow if one.do in slow else ()) for one in mistakes
    ]
    return pytest.mark.parametrize("mistake", marked)


def is_told(mistake: Mistake, scene: Scene) -> None:
    line = mistake.do(scene)
    assert "\n" not in line
    assert mistake.cause in line
    assert mistake.step in line


@each(MISTAKES, wrong_password)
def test_a_usual_mistake_is_one_line_that_names_its_cause_and_the_next_step(
    mistake: Mistake, scene: Scene
) -> None:
    is_told(mistake, scene)


def test_requests_to_no_source_are_told_once_a_minute(scene: Scene) -> None:
    app = scene.inbox().asgi()
    for n in range(50):
        assert answer(app, f"/made-up-{n}").status_code == 404
    assert "made-up-0" in scene.logged()


def test_an_event_does_not_fail_for_what_its_handler_returns(scene: Scene) -> None:
    inbox = scene.inbox()
    inbox.on("partner")(lambda event, tx: object())
    for n in range(3):
        inbox.receive(call(*message(f"evt_{n}"), at=inbox.clock.now()))
    inbox.work()
    assert inbox.counts() == {"partner": {"finalized": 3}}
    assert "object" in scene.logged(), "once for each handler"
    inbox.replay(reason="again", source="partner")
    inbox.work()
    assert not any(one.changed for one in inbox.events())


def test_a_lease_long_enough_is_taken() -> None:
    Inbox("sqlite://", [partner()], rules=Rules(lease_ms=90_000)).on("partner", timeout_s=45)(moved)
