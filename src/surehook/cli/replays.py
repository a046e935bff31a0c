"""`surehook replays`: deliver again everything that a filter matches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.filters import Code, CorrelationId, Error, Receipt, Status, Subject
from surehook.cli.inputs import end_states
from surehook.cli.output import ApiObject, Json, note, print_record
from surehook.cli.server import Key, Since, Tenant, Until, Url, Yes, confirm, only_tenant, server

if TYPE_CHECKING:
    from surehook.client.fields import DeliveryFilters

app = group("Replays: deliver again by filter.")

POLL_S = 0.5


@app.command()
def create(
    tenant: Tenant = None,
    endpoint: Annotated[str | None, typer.Option(help="Only to this endpoint.")] = None,
    type: Annotated[str | None, typer.Option(help="Only of this event type.")] = None,
    state: Annotated[
        str | None,
        typer.Option(help="Only in this end state, such as dead.", autocompletion=end_states),
    ] = None,
    outcome: Annotated[
        str | None, typer.Option(help="Only with this last result, such as timed_out.")
    ] = None,
    status: Status = None,
    error: Error = None,
    subject: Subject = None,
    correlation_id: CorrelationId = None,
    receipt: Receipt = None,
    code: Code = None,
    since: Since = None,
    until: Until = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count only.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait", help="Until the job is done; exit code 7 if it fails.")
    ] = False,
    yes: Yes = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> int:
    """Start a replay. The event ids and bytes stay the same, so receivers can tell a repeat."""
    from surehook.cli.human_times import span
    from surehook.cli.progress import busy

    times = span(since, until)
    chosen: DeliveryFilters = {
        "tenant": only_tenant(url, key, tenant),
        "endpoint": endpoint,
        "type": type,
        "state": state,
        "outcome": outcome,
        "status": status,
        "error": error,
        "subject": subject,
        "correlation_id": correlation_id,
        "receipt": receipt,
        "code": code,
        "since": times["since"],
        "until": times["until"],
    }
    where = {name: value for name, value in chosen.items() if value is not None}
    if not where:
        from surehook.cli.errors import USAGE, CommandError

        raise CommandError("which deliveries?", hint="give a filter, such as --state dead", code=USAGE)
    if not dry_run:
        said = ", ".join(f"{name} {value}" for name, value in where.items())
        confirm(f"Deliver again: {said}?", yes=yes)
    with server(url, key) as client:
        if endpoint is not None:
            client.endpoints.get(endpoint)  # a missing one would match nothing, silently
        job = client.replays.create(filter=chosen, dry_run=dry_run)
        with busy(f"replay {job['id']}") as waiting:
            while wait and job["state"] == "running":
                time.sleep(POLL_S)
                job = client.replays.get(job["id"])
                waiting.text = f"replay {job['id']}: {job['created']:,} of {job['matched']:,} found so far"
    print_record(job, json=json)
    return _finish(job)


@app.command()
def show(
    replay: Annotated[str, typer.Argument(metavar="REPLAY", help="rpl_…")],
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> int:
    """Show how far a replay is."""
    with server(url, key) as client:
        job = client.replays.get(replay)
    print_record(job, json=json)
    return _finish(job)


def _finish(job: ApiObject) -> int:
    from surehook.cli.errors import NOT_MET, OK

    if job["state"] == "failed":
        return NOT_MET
    if job["state"] == "running":
        note(f"still running: surehook replays show {job['id']}")
    return OK
