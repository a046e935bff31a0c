"""The receiving application: `python -m surehook.demo.application DATABASE PORT`.

surehook's inbox in front of one SQLite file, the ready table for signing, and one handler: it writes each move of a document as
a row of `effects`, through `tx`. Nothing in that table keeps a row from being there twice: that is the task of the inbox,
and what the demonstration checks.

The first line on standard input is the secret of its source. The process ends when its standard input does, so that it cannot
outlive the demonstration.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import uvicorn
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from surehook.demo.plan import SOURCE
from surehook.inbox import Inbox, Rules, sources
from surehook.inbox.workflow import SIGNING

# Leases of a killed process lapse after a second and a half; everything else is the default.
RULES = Rules(lease_ms=1_500, idle_s=0.2)
TABLE = text(
    "create table if not exists effects (event_id text not null, document text not null, before text, after text)"
)
INSERT = text("insert into effects values (:event_id, :document, :before, :after)")


def make(database: str, secret: str) -> Inbox:
    """The inbox with its tables, its workflow and its handler."""
    inbox = Inbox(
        f"sqlite:///{database}", [sources.named("surehook", name=SOURCE, secret=secret)], rules=RULES
    )
    inbox.create_tables()
    with inbox.store.engine.begin() as connection:
        connection.execute(TABLE)
    inbox.follow(SIGNING, SOURCE, "document.*")

    @inbox.on(SOURCE, "document.*")
    def moved(event: Any, tx: Any) -> None:
        tx.execute(
            INSERT,
            {
                "event_id": event.id,
                "document": event.body["subject"],
                "before": event.change.before,
                "after": event.change.after,
            },
        )

    return inbox


def main(database: str, port: str) -> None:
    with open(0, "rb", buffering=0, closefd=False) as stdin:
        secret = stdin.readline().decode().strip()
    inbox = make(database, secret)
    app = Starlette(
        routes=[Mount("/hooks", inbox.asgi()), Route("/pid", _pid)],
        lifespan=inbox.lifespan,
    )
    settings = uvicorn.Config(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)
    asyncio.run(_serve(uvicorn.Server(settings)))
    inbox.close()


async def _serve(server: uvicorn.Server) -> None:
    loop = asyncio.get_running_loop()

    def ended() -> None:  # readable without a writer: the end
        loop.remove_reader(0)
        server.should_exit = True

    loop.add_reader(0, ended)
    await server.serve()


async def _pid(request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(os.getpid()))


if __name__ == "__main__":
    main(*sys.argv[1:])
