"""`surehook ingest`: events from a broker's queue to the server."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import TYPE_CHECKING, Annotated

import typer

from surehook.cli.commands import command
from surehook.cli.output import note
from surehook.cli.server import Key, Url

if TYPE_CHECKING:
    from surehook.config import Settings
    from surehook.ingest.reading import IngestRules
    from surehook.ingest.run import QueueAddress

app = command()


@app.command()
def ingest(
    source: Annotated[
        str, typer.Option("--from", metavar="URL", help="amqp://user:password@host/queue, or …/vhost/queue.")
    ],
    tenant: Annotated[
        str | None,
        typer.Option(help="Whose events, where a message does not say.", show_default="SUREHOOK_TENANT"),
    ] = None,
    idempotency: Annotated[
        str,
        typer.Option(help="What tells a repeat where the event has no id or key: message-id, body, none."),
    ] = "message-id",
    prefetch: Annotated[
        int, typer.Option(min=1, max=20_000, help="Messages taken and not yet acknowledged, at most.")
    ] = 2_000,
    dead_letters: Annotated[
        str | None, typer.Option(help="Queue for what no server would take.", show_default="QUEUE.dead")
    ] = None,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Take events from a RabbitMQ queue and publish them, until Ctrl-C.

    Messages are the JSON of POST /v1/events, or CloudEvents 1.0 (structured or in headers). One is acknowledged
    when its event is on the server's disk. What is refused goes to the dead-letter queue with the reason.
    """
    from surehook.cli.errors import NOT_FOUND, USAGE, CommandError
    from surehook.cli.server import settings_for

    if idempotency not in ("message-id", "body", "none"):
        raise CommandError("--idempotency is message-id, body or none", code=USAGE)
    try:
        from surehook.ingest.rabbit import NoSuchQueue, parse
    except ImportError:
        raise CommandError(
            "RabbitMQ needs the library aio-pika", hint="pip install 'surehook[rabbitmq]'"
        ) from None
    from surehook.ingest.reading import IngestRules
    from surehook.ingest.run import QueueAddress

    broker, queue = parse(source)
    settings = settings_for(url, api_key, tenant)
    place = QueueAddress(broker, queue, dead_letters or f"{queue}.dead", prefetch)
    try:
        asyncio.run(_ingest(settings, place, IngestRules(settings.tenant, idempotency)))
    except NoSuchQueue as error:
        raise CommandError(
            str(error), hint="declare it first: it is the publishers'", code=NOT_FOUND
        ) from None


async def _ingest(settings: Settings, place: QueueAddress, rules: IngestRules) -> None:
    from msgspec import Raw

    from surehook.client import AsyncClient, Refused
    from surehook.client.calls import Sent, event_id, sent_each
    from surehook.ingest.intake import Intake
    from surehook.ingest.run import run

    async with AsyncClient(settings.server_url, settings.api_key, patience_s=0, connections=4) as client:

        async def post(items: list[bytes]) -> list[Sent | Refused]:
            answers = await client.call("POST", "/v1/events/batch", json=[Raw(each) for each in items])
            return sent_each(answers, len(items))

        intake = Intake(
            post,
            rules=rules,
            new_id=lambda: event_id(int(time.time() * 1000), os.urandom(10)),
            sleep=asyncio.sleep,
            tell=note,
        )
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        try:
            await run(place, intake, stop=stop, tell=note)
        finally:
            note(f"{intake.published:,} published, {intake.refused:,} put aside")
