"""`surehook listen`: a receiver on this machine that verifies, prints, and can be made slow or failing."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import command
from surehook.cli.server import Key, Url

app = command()


@app.command()
def listen(
    place: Annotated[str, typer.Argument(metavar="[PORT][/PATH]", help="Where to listen.")] = "4000/",
    secret: Annotated[
        list[str] | None,
        typer.Option("--secret", help="whsec_… to verify with; several during a rotation."),
    ] = None,
    status: Annotated[int, typer.Option(min=200, max=599, help="Answer with this status.")] = 200,
    delay: Annotated[str, typer.Option(help="Answer after this long, such as 2s.")] = "0s",
    flaky: Annotated[
        float, typer.Option(min=0, max=1, help="This share of requests fails: a 500, or no answer.")
    ] = 0.0,
    hang: Annotated[bool, typer.Option("--hang", help="Never answer.")] = False,
    create: Annotated[
        bool, typer.Option("--create", help="Register with the server as an endpoint, until Ctrl-C.")
    ] = False,
    tenant: Annotated[
        str | None, typer.Option(help="With --create: whose endpoint.", show_default="SUREHOOK_TENANT")
    ] = None,
    events: Annotated[str, typer.Option(help="With --create: event types, separated by commas.")] = "*",
    policy: Annotated[str | None, typer.Option(help="With --create: name, JSON object or @file.")] = None,
    body: Annotated[bool, typer.Option("--body/--no-body", help="Print the data of each event.")] = True,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document a line.")] = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Receive webhooks on 127.0.0.1, verify and print them, until Ctrl-C.

    A request whose signature does not hold is printed as such and answered 401. To be reached from a
    server on this machine, that server must allow it: `surehook serve --dev`.
    """
    from surehook.cli.human_times import duration_s
    from surehook.cli.listener import Listener, Registration, split_place
    from surehook.cli.server import settings_for, tenant_of
    from surehook.demo.receiver import Behaviour

    port, path = split_place(place)
    registration = None
    if create:
        settings = settings_for(url, key, tenant)
        registration = Registration(
            settings.server_url, settings.api_key, tenant_of(settings), events, policy
        )
    behaviour = Behaviour(status=status, delay_s=duration_s(delay), flaky=flaky, hangs=hang)
    listener = Listener(port, path, behaviour, secrets=secret or [], body=body, json=json)
    listener.run(registration)
