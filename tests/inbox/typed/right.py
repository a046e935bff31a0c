"""What a type checker lets pass: handlers of every kind, and every sort of option."""

from dataclasses import dataclass
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession
from sqlalchemy.orm import Session

from surehook.inbox import AsyncInbox, Backoff, Event, Ignore, Inbox, Later, sources
from surehook.inbox.django import inbox as of_django

inbox = Inbox("sqlite://", [sources.named("stripe", secret=["new", "old"], name="eu", tolerance_s=60)])
loops = AsyncInbox("sqlite://")
inbox.add(sources.hmac("mine", secret="s", header="X-Signature", encoding="base64", ignore=["a.*"]))
inbox.add(sources.bearer("theirs", secret="s", header="X-Token", body_bytes=1024))
inbox.add(sources.of(sources.PROVIDERS["github"], secret="s", tenant="acme"))


@dataclass
class Done:
    id: str


@inbox.on("eu")
def nothing(event: Event, tx: Connection) -> None: ...


@inbox.on("eu", "invoice.*", version="2", retry=Backoff(attempts=3))
def something(event: Event, tx: Any) -> dict[str, int]:
    return {"rows": 1}


@inbox.on("eu")
def says(event: Event, tx: Any) -> Later | Ignore | Done | None:
    return Later("30s")


@inbox.on("eu")
def bare(event, tx):  # type: ignore[no-untyped-def]
    return tx.execute("")


inbox.on("eu")(lambda event, tx: event.id)


@inbox.on("eu")
def of_session(event: Event, tx: Session) -> None: ...


@inbox.on_undo("eu")
def of_either(event: Event, tx: Connection | Session) -> None: ...


class Service:
    def __call__(self, event: Event, tx: Connection) -> str:
        return event.id

    async def waits(self, event: Event, tx: AsyncSession) -> str:
        return event.id


inbox.on("eu")(Service())
loops.on("eu")(Service())
loops.on("eu")(Service().waits)


@loops.on("eu", timeout_s=5)
async def waits(event: Event, tx: AsyncConnection) -> Done:
    return Done(event.id)


@loops.on("eu")
def blocks(event: Event, tx: Connection) -> None: ...


@loops.on_undo("eu")
async def bare_too(event, tx):  # type: ignore[no-untyped-def]
    await tx.execute("")


@of_django.on("eu")
def of_django_too(event: Event, tx: BaseDatabaseWrapper) -> None: ...


something(Event.__new__(Event), None)["rows"].bit_length()  # what is decorated stays what it was
inbox.events(source="eu", type="invoice.*", state="dead", since="2026-11-01T00:00:00Z", limit=5)
inbox.replay(reason="again", ref="inb_1", code=None, until=1)
