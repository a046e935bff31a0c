"""What a type checker finds: one usual mistake a line. Read by it alone, and never run."""

import sqlite3
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection

from surehook.inbox import AsyncInbox, Event, Inbox, sources
from surehook.inbox.django import inbox as of_django

inbox = Inbox("sqlite://", [sources.named("stripe", secret="s")])
loops = AsyncInbox("sqlite://", [sources.named("stripe", secret="s")])


@inbox.on("stripe")  # mistake: a handler's parameters
def alone(event: Event) -> None: ...


@loops.on("stripe")  # mistake: a handler's parameters, in a loop
async def alone_too(event: Event) -> None: ...


@inbox.on("stripe")  # mistake: a coroutine on Inbox
async def later(event: Event, tx: Any) -> None: ...


@inbox.on("stripe")  # mistake: the driver's connection, and tx is SQLAlchemy's
def raw(event: Event, tx: sqlite3.Connection) -> None: ...


@inbox.on("stripe")  # mistake: a connection to await, on Inbox
def awaits(event: Event, tx: AsyncConnection) -> None: ...


@inbox.on_undo("stripe")  # mistake: the same, of who undoes
def undoes(event: Event, tx: sqlite3.Connection) -> None: ...


@loops.on("stripe")  # mistake: a connection that blocks, in a coroutine
async def blocks(event: Event, tx: Connection) -> None: ...


@loops.on("stripe")  # mistake: a connection to await, where nothing is awaited
def never_awaits(event: Event, tx: AsyncConnection) -> None: ...


@loops.on_undo("stripe")  # mistake: the driver's connection
async def undoes_raw(event: Event, tx: sqlite3.Connection) -> None: ...


@of_django.on("stripe")  # mistake: SQLAlchemy's connection, and tx is Django's
def of_sqlalchemy(event: Event, tx: Connection) -> None: ...


sources.named("strype", secret="s")  # mistake: a provider
sources.named("stripe", secret="s", tolerance=60)  # mistake: an option
sources.hmac("mine", secret="s", heder="X-Signature")  # mistake: an option of hmac
inbox.events(sorce="stripe")  # mistake: a filter
inbox.events(state="deed")  # mistake: a state
inbox.replay(reason="again", tpye="invoice.paid")  # mistake: a filter of a replay
inbox.on("stripe", timeout=5)  # mistake: an option of a handler
