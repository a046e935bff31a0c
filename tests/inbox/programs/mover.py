"""Workers and a mover as a process of their own, which may kill itself. Started by tests, killed by tests.

    python -m tests.inbox.programs.mover KIND URL QUEUE [POINT COUNT]

POINT names where it ends, the COUNT-th time that it comes there:

    taken       a message is in hand, nothing of it is committed
    committed   a request is committed, and its message not acknowledged
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from sqlalchemy import text

from surehook.inbox import AsyncInbox, Inbox, Rules
from surehook.inbox.queue import packing
from surehook.inbox.queue import redis as redis_queue
from surehook.inbox.running import until_stopped
from tests.inbox.house import partner

INSERT = text("insert into effects (event_id) values (:id)")


def dying(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function, which kills the process when it has been called so often."""
    calls = 0

    def call(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*given)

    return call


def main(kind: str, url: str, queue: str, point: str = "", count: str = "0") -> None:
    redis_queue.ABANDONED_MS = 1_000  # a test does not wait half a minute for the dead
    make: Any = Inbox if kind == "sync" else AsyncInbox
    inbox = make(
        url,
        [partner(on_conflict="accept")],
        queue=queue,
        rules=Rules(lease_ms=1_000, timeout_s=0.5, idle_s=0.1),
    )

    def blocking(event: Any, tx: Any) -> None:
        tx.execute(INSERT, {"id": event.id})

    async def waiting(event: Any, tx: Any) -> None:
        await tx.execute(INSERT, {"id": event.id})

    inbox.on("partner", "*", version="1")(blocking if kind == "sync" else waiting)
    if point == "taken":
        packing.unpack = dying(packing.unpack, int(count))
    elif point == "committed":
        inbox.stored = dying(inbox.stored, int(count))
    until_stopped(inbox, 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
