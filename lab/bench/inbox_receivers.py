"""Receivers that `lab.bench.inbox` compares, one uvicorn process: `python -m lab.bench.inbox_receivers KIND URL PORT`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import create_async_engine

from surehook.inbox import AsyncInbox, Inbox
from surehook.inbox.sql import engines
from surehook.verify import verify
from tests.inbox.house import SECRET, partner
from tests.inbox.programs.table import TABLE

PLAIN = "create table plain (event_id varchar(255) primary key, body {blob} not null, headers text not null)"
EFFECTS = "create table effects (event_id varchar(255) not null, state varchar(64))"


def prepare(url: str) -> None:
    """The tables of both."""
    inbox = Inbox(url)
    inbox.create_tables()
    blob = "blob" if url.startswith("sqlite") else "bytea"
    with inbox.store.engine.begin() as connection:
        connection.execute(text(PLAIN.format(blob=blob)))
        connection.execute(text(EFFECTS))
    inbox.close()


def inbox_on(url: str) -> Any:
    """The inbox as an application would have it: blocking on SQLite, asynchronous elsewhere."""
    inbox: Any = (Inbox if url.startswith("sqlite") else AsyncInbox)(url, [partner()])
    inbox.follow(TABLE, "partner", "document.*")
    insert = text("insert into effects (event_id, state) values (:id, :state)")

    def blocking(event: Any, tx: Any) -> None:
        tx.execute(insert, {"id": event.id, "state": event.change.after})

    async def waiting(event: Any, tx: Any) -> None:
        await tx.execute(insert, {"id": event.id, "state": event.change.after})

    inbox.on("partner", "document.*")(blocking if isinstance(inbox, Inbox) else waiting)
    return inbox


def inbox_app(url: str, *, mounted: bool = False) -> Any:
    """The inbox in front of FastAPI, or mounted in it, as its documentation has both, without workers."""
    app = FastAPI()
    if mounted:
        app.mount("/hooks", inbox_on(url).asgi())
        return app
    return inbox_on(url).before(app, "/hooks")


def plain_app(url: str) -> FastAPI:
    """A handler as one writes it: verify, insert, commit, answer."""
    app = FastAPI()
    insert = text("insert into plain (event_id, body, headers) values (:id, :body, :headers)")

    def row(request: Request, body: bytes) -> dict[str, Any]:
        message = verify("standard", body, request.headers, SECRET)
        return {"id": message.id, "body": body, "headers": json.dumps(dict(request.headers))}

    if url.startswith("sqlite"):
        engine = engines.engine(url)  # durable, as the inbox's
        # SQLite has one writer. Several threads, which wait for its lock asleep, were no faster.
        writer = ThreadPoolExecutor(1)

        def store(values: dict[str, Any]) -> None:
            with contextlib.suppress(IntegrityError), engine.begin() as connection:
                connection.execute(insert, values)

        @app.post("/hooks/partner")
        async def hook(request: Request) -> Response:
            values = row(request, await request.body())
            await asyncio.get_running_loop().run_in_executor(writer, store, values)
            return Response()

    else:
        waiting = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://"))

        @app.post("/hooks/partner")
        async def hook(request: Request) -> Response:
            values = row(request, await request.body())
            with contextlib.suppress(IntegrityError):
                async with waiting.begin() as connection:
                    await connection.execute(insert, values)
            return Response()

    return app


if __name__ == "__main__":
    kind, url, port = sys.argv[1:]
    app = plain_app(url) if kind == "plain" else inbox_app(url, mounted=kind == "mounted")
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)
