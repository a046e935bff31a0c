"""`surehook resend`: the short form of `surehook deliveries resend`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import command
from surehook.cli.output import Json
from surehook.cli.server import Key, Url

app = command()


@app.command()
def resend(
    delivery: Annotated[list[str], typer.Argument(metavar="DELIVERY…", help="dlv_…, one or more.")],
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> int:
    """Deliver finished ones again (as new deliveries of the same event), and open ones at once.

    The event's id and bytes stay the same: a receiver that knows the event ignores it. Behind an open breaker nothing is
    sent at once: its next probe is due at once, and parked deliveries go out when that arrives.
    """
    from surehook.cli.delivery_actions import resend_all

    return resend_all(delivery, json=json, url=url, key=key)
