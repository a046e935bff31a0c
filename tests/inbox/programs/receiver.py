"""A receiver as a process of its own: uvicorn, an inbox, one handler. Started by tests, killed by tests.

    python -m tests.inbox.programs.receiver KIND URL PORT [CRASH]

CRASH names the point at which the process kills itself, once a file of that name is not there any more:

    persisted   the request is committed, nothing was answered
    handled     the handler has done its work, nothing is committed
    settled     effects and mark are committed
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import uvicorn
from sqlalchemy import text
from starlette.applications import Starlette
from starlette.routing import Mount

from surehook.inbox import AsyncInbox, Inbox, Rules
from tests.inbox.house import partner
from tests.inbox.programs.table import TABLE

INSERT = text("insert into effects (event_id, word) values (:id, :word)")


def crash(point: str, wanted: str, once: Path) -> None:
    if point == wanted and not once.exists():
        once.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def inbox_of(kind: str, url: str, wanted: str, once: Path) -> Any:
    make: Any = Inbox if kind == "sync" else AsyncInbox
    inbox = make(url, [partner()], rules=Rules(lease_ms=1_000, idle_s=0.1))
    inbox.follow(TABLE, "partner", "document.*")

    def blocking(event: Any, tx: Any) -> None:
        tx.execute(INSERT, {"id": event.id, "word": None if event.change is None else event.change.after})
        crash("handled", wanted, once)

    async def waiting(event: Any, tx: Any) -> None:
        await tx.execute(
            INSERT, {"id": event.id, "word": None if event.change is None else event.change.after}
        )
        crash("handled", wanted, once)

    inbox.on("partner", "*", version="1")(blocking if kind == "sync" else waiting)
    arrived, told = inbox.arrived, inbox.transactions.report

    def arrives(*given: Any) -> None:
        crash("persisted", wanted, once)
        arrived(*given)

    def tells(done: Any) -> None:
        crash("settled", wanted, once)
        told(done)

    inbox.arrived, inbox.transactions.report = arrives, tells
    return inbox


def main(kind: str, url: str, port: str, wanted: str = "", once: str = "") -> None:
    inbox = inbox_of(kind, url, wanted, Path(once or "unused"))
    app = Starlette(routes=[Mount("/hooks", inbox.asgi())], lifespan=inbox.lifespan)
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")


if __name__ == "__main__":
    main(*sys.argv[1:])
