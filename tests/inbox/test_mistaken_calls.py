"""Mistakes in calls of the inbox and in the address of its database, each refused in one line where it is made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from surehook.inbox import AsyncInbox, Inbox, sources
from tests import servers
from tests.inbox.house import SECRET, partner
from tests.inbox.test_mistakes import Mistake, Scene, answer, each, is_told, raised, scene

__all__ = ["scene"]


def starts(kind: Any, workers: object) -> str:
    async def go() -> None:
        kind("sqlite://", [partner()]).start(workers=workers)

    return raised(lambda: asyncio.run(go()))


def mounted_in_starlette(scene: Scene) -> str:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    app = Starlette(routes=[Mount("/hooks", scene.inbox())])  # type: ignore[arg-type]
    return raised(lambda: answer(app, "/hooks/partner"))


def mounted_in_fastapi(scene: Scene) -> str:
    from fastapi import FastAPI

    app = FastAPI()
    app.mount("/hooks", AsyncInbox("sqlite://", [partner()]))
    return raised(lambda: answer(app, "/hooks/partner"))


def mounted_in_flask(scene: Scene) -> str:
    from flask import Flask
    from werkzeug.middleware.dispatcher import DispatcherMiddleware

    app = Flask("shop")
    app.wsgi_app = DispatcherMiddleware(app.wsgi_app, {"/hooks": scene.inbox()})  # type: ignore[method-assign]
    return raised(lambda: app.test_client().post("/hooks/partner", data=b"{}"))


def mounted_in_django(scene: Scene) -> str:
    from tests.inbox import djangos

    with djangos.at(f"sqlite:///{scene.folder / 'shop.db'}"):
        return raised(lambda: djangos.Inbox([partner()])(object(), source="partner"))


def addressed(kind: Any, url: str) -> str:
    said = raised(lambda: kind(url, [partner()]))
    assert "s3cr" not in said and "t1" not in said, "nothing of the password is shown"
    return said


def makes_tables(scene: Scene, url: str) -> str:
    return raised(scene.inbox(url, tables=False).create_tables)


def as_role(url: str, name: str) -> str:
    return make_url(url).set(username=name, password=None).render_as_string(hide_password=False)


def without_the_schema(scene: Scene) -> str:
    with servers.postgres().database() as url:
        servers.postgres().ask('drop role if exists "New role"; create role "New role" login')
        return makes_tables(scene, as_role(url, "New role"))


def without_the_schema_in_a_loop(scene: Scene) -> str:
    async def go(url: str) -> None:
        inbox = AsyncInbox(url, [partner()])
        try:
            await inbox.create_tables()
        finally:
            await inbox.close()

    with servers.postgres().database() as url:
        servers.postgres().ask("drop role if exists newest; create role newest login")
        asynchronous = make_url(as_role(url, "newest")).set(drivername="postgresql")
        return raised(lambda: asyncio.run(go(asynchronous.render_as_string(hide_password=False))))


def with_another_search_path(scene: Scene) -> str:
    with servers.postgres().database() as url:
        return makes_tables(scene, f"{url}?options=-csearch_path%3Dnowhere")


def to_a_file_that_is_only_read(scene: Scene) -> str:
    (scene.folder / "app.db").touch()
    return makes_tables(scene, f"sqlite:///file:{scene.folder / 'app.db'}?mode=ro&uri=true")


def without_create(scene: Scene) -> str:
    server = servers.mariadb()
    with server.database() as url:
        server.ask("create or replace user meek")
        # The tests' user may do everything but grant.
        server.ask(
            f"replace into mysql.db (host, db, user, select_priv) values ('%', '{make_url(url).database}', 'meek', 'Y')"
        )
        server.ask("flush privileges")
        return makes_tables(scene, as_role(url, "meek"))


def without_the_database(scene: Scene) -> str:
    server = servers.mariadb()
    with server.database() as url:
        server.ask("create or replace user stray")
        return scene.away(as_role(url, "stray"))


def told(scene: Scene, command: str, *given: Any, **named: Any) -> str:
    return raised(lambda: getattr(scene.inbox(), command)(*given, **named))


REF = "inb_01ka9x7k2ceabtx1qs2yq6fq1d"
BY: dict[str, Any] = {"by": "ana", "reason": "seen on paper"}
# Command → what was given, the parameter at fault, a word of the next step.
GIVEN: list[tuple[str, tuple[Any, ...], dict[str, Any], str, str]] = [
    ("reject", (None, "late"), {}, "ref: None is no reference", "event.ref"),
    ("reject", ("", "late"), {}, "ref: '' is no reference", "event.ref"),
    ("reject", (REF, None), {}, "code: a text that is not empty, and not None", "a word for machines"),
    ("reject", (REF, "Not a word; drop"), {}, "code: 'Not a word; drop' is no word", '"wrong_amount"; a sentence'),
    ("reject", (REF, "x" * 65), {}, "is no word for machines", "at most 64"),
    ("reject", (REF, " "), {}, "code: a text that is not empty", "a word for machines"),
    ("reject", (REF, "late", None), {}, "note: a text, and not None", 'note=""'),
    ("finalize", (None,), {}, "ref: None is no reference", "event.ref"),
    ("finalize", (REF, None), {}, "note: a text, and not None", 'note=""'),
    ("show", (None,), {}, "ref: None is no reference", "event.ref"),
    ("events", (), {"ref": 5}, "ref: 5 is no reference", "event.ref"),
    ("events", (), {"limit": "5"}, "limit: a whole number from 1 to 10000, and not '5'", ""),
    ("conflicts", (), {"before": ""}, "before: '' is no reference", "event.ref"),
    ("replay", (), {"reason": None, "state": "dead"}, "reason: a text that is not empty, and not None", "asks later"),
    ("replay", (), {"reason": 5, "state": "dead"}, "reason: a text that is not empty, and not 5", "asks later"),
    ("explain", (None,), {}, "document: a text that is not empty, and not None", "events of the document"),
    ("explain", ("d", ), {"tenant": None}, "tenant: a text, and not None", 'tenant=""'),
    *(
        (command, given, BY | named, cause, step)
        for command in ("release", "grant")
        for given, named, cause, step in (
            ((None,), {}, "document: a text that is not empty, and not None", "events of the document"),
            (("",), {}, "document: a text that is not empty, and not ''", "events of the document"),
            ((42,), {}, "document: a text that is not empty, and not 42", "events of the document"),
            (("d",), {"tenant": None}, "tenant: a text, and not None", 'tenant=""'),
            (("d",), {"by": None}, "by: a text that is not empty, and not None", "asks later"),
            (("d",), {"by": 5}, "by: a text that is not empty, and not 5", "asks later"),
            (("d",), {"reason": " "}, "reason: a text that is not empty", "asks later"),
        )
    ),
    ("grant", ("d", 5), BY, "token: 1 to 255 visible characters", ""),
]  # fmt: skip

MISTAKES = [
    *(
        Mistake(f"{command}(*{given}, **{named})", lambda s, command=command, given=given, named=named: told(s, command, *given, **named), cause, step)
        for command, given, named, cause, step in GIVEN
    ),
    *(
        Mistake(f"left a password as it is in a URL of {kind.__name__}: {url}", lambda s, kind=kind, url=url: addressed(kind, url), "an @ in a user or password", "%40")
        for kind in (Inbox, AsyncInbox)
        for url in (
            "postgresql://app:s3cr@t1@db/app", "postgresql://app:s3cr@t1/x@db/app", "postgresql://app:s3cr@t1:x@db:5432/app",
            "mysql://app:s3cr@t1@db:3306/app?charset=utf8mb4", "postgresql://a@b:s3cr@t1@db/app",
        )
    ),
    Mistake("mounted the inbox itself in Starlette", mounted_in_starlette, "an Inbox is no application", "inbox.asgi()"),
    Mistake("mounted the inbox itself in FastAPI", mounted_in_fastapi, "an AsyncInbox is no application", "inbox.asgi()"),
    Mistake("mounted the inbox itself in Flask", mounted_in_flask, "an Inbox is no application", ".wsgi()"),
    Mistake("mounted the inbox itself in Django", mounted_in_django, "an Inbox is no view", "inbox.view"),
    *(
        Mistake(f"started {workers!r} workers of an {kind.__name__}", lambda s, kind=kind, workers=workers: starts(kind, workers), repr(workers), "start(workers=4)")
        for kind in (Inbox, AsyncInbox)
        for workers in (0, -1, 1.5, "4", None, True)
    ),
    Mistake("made tables as a role without rights on the schema", without_the_schema, "permission denied for schema public", 'GRANT USAGE, CREATE ON SCHEMA public TO "New role"'),
    Mistake("made them so from a loop", without_the_schema_in_a_loop, "permission denied for schema public", "GRANT USAGE, CREATE ON SCHEMA public TO newest"),
    Mistake("made tables on a search_path of nothing", with_another_search_path, "no schema has been selected to create in", "search_path"),
    Mistake("made tables in a file that is only read", to_a_file_that_is_only_read, "readonly database", "may not write"),
    Mistake("made tables as a user without CREATE", without_create, "CREATE command denied to user 'meek'", "GRANT CREATE, INDEX, SELECT, INSERT, UPDATE, DELETE ON"),
    Mistake("gave a user that may not use the database", without_the_database, "Access denied for user 'stray'", "no right on that database"),
    *(
        Mistake(f"gave receipts={receipts!r}", lambda s, receipts=receipts: raised(lambda: sources.named("surehook", secret=SECRET, receipts=receipts)), f"receipts: a {type(receipts).__name__} is no ReceiptsTo", "ReceiptsTo('https://")
        for receipts in ("https://sender/v1/receipts", True, False)
    ),
    *(
        Mistake(f"imported {name} without the extra", lambda s, name=name: s.without("sqlalchemy", f"import {name}"), "needs the package sqlalchemy", "pip install 'surehook[inbox]'")
        for name in ("surehook.inbox.testing", "surehook.inbox.sql.ddl", "surehook.inbox.sql", "surehook.inbox.transitions")
    ),
    Mistake("started an AsyncInbox beside its loop", lambda s: raised(lambda: AsyncInbox("sqlite://", [partner()]).start()), "no event loop runs here", "lifespan=inbox.lifespan"),
]  # fmt: skip


@each(MISTAKES, without_create, without_the_database)
def test_a_mistaken_call_is_one_line_that_names_its_cause_and_the_next_step(
    mistake: Mistake, scene: Scene
) -> None:
    is_told(mistake, scene)


def test_a_refused_start_leaves_nothing_behind(tmp_path: Path) -> None:
    inbox = Inbox(f"sqlite:///{tmp_path / 'app.db'}", [partner()])
    raised(lambda: inbox.start(workers=0))
    assert not inbox.pool.members
    inbox.close()


@pytest.mark.parametrize(
    ("url", "user", "password", "place"),
    [
        ("postgresql://app:s3cr%40t1@db/app", "app", "s3cr@t1", "db/app"),
        ("postgresql://app:s3/c:r%2Ft@db/app", "app", "s3/c:r/t", "db/app"),
        ("postgresql://app@corp:s3cr@db/app", "app@corp", "s3cr", "db/app"),
        ("postgresql://app:s3cr@db/app@home", "app", "s3cr", "db/app@home"),
        ("postgresql://app:s3cr@db/app?application_name=a@b/c", "app", "s3cr", "db/app"),
    ],
)
def test_an_address_that_is_right_is_taken(url: str, user: str, password: str, place: str) -> None:
    made = Inbox(url, [partner()]).store.engine.url
    assert (made.username, made.password, f"{made.host}/{made.database}") == (user, password, place)


def test_a_folder_of_sqlite_may_have_an_at_sign(tmp_path: Path) -> None:
    (tmp_path / "@app").mkdir()
    inbox = Inbox(f"sqlite:///{tmp_path}/@app/a@b.db", [partner()])
    inbox.create_tables()
    inbox.close()
