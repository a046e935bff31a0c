"""The application of `inbox_bounds.py`: handlers that hang, that are slow, and that are quick. Set up by its environment."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Any

from sqlalchemy import text

from surehook.inbox import AsyncInbox, Inbox, Rules, sources

SECRET = "whsec_" + "YmVuY2hi" * 4
HANGS, FROZEN_S = "hangs", 4.0
WRITE = text("update bench_rows set at = :at where id = :id")


def rules() -> Rules:
    return Rules(
        timeout_s=float(os.environ.get("TIMEOUT_S", "20")), lease_ms=int(os.environ.get("LEASE_MS", "60000"))
    )


def inbox_of(kind: str, url: str) -> Inbox | AsyncInbox:
    partner = sources.named("standard", name="partner", secret=SECRET)
    return (
        Inbox(url, [partner], rules=rules()) if kind == "sync" else AsyncInbox(url, [partner], rules=rules())
    )


def values(event: Any) -> dict[str, Any]:
    return {"id": event.body["row"], "at": time.time()}


def blocking(event: Any, tx: Any) -> None:
    if event.type == "before":  # slow, and writes after it
        time.sleep(event.body["s"])
    tx.execute(WRITE, values(event))
    if event.type == "hangs":
        threading.Event().wait()
    if event.type == "after":  # slow, with the row locked
        time.sleep(event.body["s"])


async def waiting(event: Any, tx: Any) -> None:
    if event.type == "before":
        await asyncio.sleep(event.body["s"])
    await tx.execute(WRITE, values(event))
    if event.type == "hangs":
        await asyncio.Event().wait()
    if event.type == "after":
        await asyncio.sleep(event.body["s"])


if "DATABASE" in os.environ:
    inbox = inbox_of(os.environ["KIND"], os.environ["DATABASE"])
    if isinstance(inbox, Inbox):
        inbox.on("partner")(blocking)
    else:
        inbox.on("partner")(waiting)
