"""`surehook endpoints`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import group
from surehook.cli.inputs import profiles
from surehook.cli.output import ApiObject, Json, document, line, note, print_record
from surehook.cli.server import (
    Cursor,
    Key,
    Limit,
    Tenant,
    Url,
    Wide,
    Yes,
    changes,
    confirm,
    listing,
    only_tenant,
    server,
    settings_for,
    tenant_of,
)
from surehook.cli.tables import Column
from surehook.core.limits import SECRET_OVERLAP_MAX_S

COLUMNS = (
    Column("id"),
    Column("status"),
    Column("url", least=36),  # cut shorter, two of one host look alike
    Column("tenant", rank=1, least=6),
    Column("failures in a row", rank=2),
    Column("events", rank=3, least=8),
    Column("reason", rank=4, least=10),
)

app = group("Endpoints: where a tenant's events go.")

Id = Annotated[str, typer.Argument(metavar="ENDPOINT", help="ep_…")]
Events = Annotated[
    str | None,
    typer.Option("--events", help="Event types, separated by commas: a.b, a.*, *", show_default="*"),
]
OtherEvents = Annotated[
    str | None, typer.Option("--events", help="Event types, separated by commas: a.b, a.*, *")
]
PolicyOption = Annotated[
    str | None,
    typer.Option("--policy", help="A policy's name, a JSON object, or @file.", autocompletion=profiles),
]
Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header", help="NAME=VALUE sent along and shown again; may be repeated. For secrets: --auth."
    ),
]
Description = Annotated[str | None, typer.Option(help="A note for people.")]
Method = Annotated[str | None, typer.Option("--method", help="POST, PUT or PATCH.", show_default="POST")]
OtherMethod = Annotated[str | None, typer.Option("--method", help="POST, PUT or PATCH.")]
Auth = Annotated[
    str | None,
    typer.Option(
        "--auth",
        help='How requests show who calls, as JSON: {"type": "basic", …}, bearer, api_key or oauth2; null takes it '
        "away. Better @file or - than secrets on the command line.",
    ),
]
Ca = Annotated[str | None, typer.Option("--ca", help="PEM of the authorities to trust, @file.")]
ClientCert = Annotated[str | None, typer.Option("--client-cert", help="PEM of a client certificate, @file.")]
Receipts = Annotated[
    bool | None,
    typer.Option(
        "--receipts/--no-receipts",
        help="Ask receivers to tell later what became of an event.",
        show_default=False,
    ),
]
Within = Annotated[
    str | None,
    typer.Option(
        "--finalize-within",
        help="With receipts: a notice where no end is told so long after a delivery, such as 1d.",
    ),
]
ClientKey = Annotated[str | None, typer.Option("--client-key", help="PEM of its key, @file.")]


@app.command("list")
def list_endpoints(
    tenant: Tenant = None,
    status: Annotated[
        str | None,
        typer.Option(
            help="active, paused, inactive or failure.",
            autocompletion=lambda: ["active", "paused", "inactive", "failure"],
        ),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    wide: Wide = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """List endpoints, newest first."""
    with server(url, key) as client:
        listing(
            client,
            "/v1/endpoints",
            {"tenant": only_tenant(url, key, tenant), "status": status},
            limit=limit,
            cursor=cursor,
            json=json,
            wide=wide,
            columns=COLUMNS,
            row=lambda e: [e["id"], e["status"], e["url"], e["tenant"], e["failure_count"], e["event_types"], e["reason"]],
            nothing="no endpoints; make one with `surehook endpoints create https://… --tenant NAME`",
        )  # fmt: skip


@app.command()
def show(endpoint: Id, json: Json = False, url: Url = None, key: Key = None) -> None:
    """Show one endpoint."""
    with server(url, key) as client:
        seen = client.endpoints.get(endpoint)
        if not json:
            seen["secrets"] = _signing(list(client.endpoints.secrets(endpoint)))
    _facts(seen, json=json)


@app.command()
def create(
    target: Annotated[str, typer.Argument(metavar="URL", help="Where requests go.")],
    tenant: Annotated[
        str | None, typer.Option(help="Whose endpoint it is.", show_default="SUREHOOK_TENANT")
    ] = None,
    events: Events = None,
    policy: PolicyOption = None,
    header: Headers = None,
    description: Description = None,
    method: Method = None,
    auth: Auth = None,
    ca: Ca = None,
    client_cert: ClientCert = None,
    client_key: ClientKey = None,
    receipts: Receipts = None,
    finalize_within: Within = None,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Create an endpoint. Its signing secret is shown now and not again."""
    fields = _fields(events or "*", policy, header, description)
    fields |= _custom(method, auth, ca=ca, client_cert=client_cert, client_key=client_key)
    fields |= _asked(receipts, finalize_within)
    owner = tenant_of(settings_for(url, key, tenant))
    with server(url, key) as client:
        made = client.endpoints.create(tenant=owner, url=target, **fields)
    _with_secret(made, json=json)


@app.command()
def update(
    endpoint: Id,
    target: Annotated[str | None, typer.Option("--target", help="The new URL that requests go to.")] = None,
    events: OtherEvents = None,
    policy: PolicyOption = None,
    header: Headers = None,
    description: Description = None,
    method: OtherMethod = None,
    auth: Auth = None,
    ca: Ca = None,
    client_cert: ClientCert = None,
    client_key: ClientKey = None,
    receipts: Receipts = None,
    finalize_within: Within = None,
    no_tls: Annotated[
        bool, typer.Option("--no-tls", help="Take own authorities and client certificate away.")
    ] = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Change what is given; everything else stays. `--policy null` takes the endpoint's own policy away. Of --ca,
    --client-cert and --client-key, those not given are removed."""
    fields = _fields(events, policy, header, description)
    fields |= _custom(method, auth, ca=ca, client_cert=client_cert, client_key=client_key)
    fields |= _asked(receipts, finalize_within)
    if no_tls:
        fields["tls"] = None
    if target is not None:
        fields["url"] = target
    changes(fields, "--target, --events, --policy, --header …")
    with server(url, key) as client:
        _facts(client.endpoints.update(endpoint, **fields), json=json)


@app.command()
def pause(endpoint: Id, json: Json = False, url: Url = None, key: Key = None) -> None:
    """Stop sending. Events are still accepted and kept, parked."""
    with server(url, key) as client:
        _facts(client.endpoints.update(endpoint, status="paused"), json=json)


@app.command()
def resume(endpoint: Id, json: Json = False, url: Url = None, key: Key = None) -> None:
    """Send again, whatever its status was; deliveries parked for it go out, the oldest first.

    An open breaker (`breaker`, `key`) stays open: its next probe is due at once, and parked deliveries go out when that
    arrives. `surehook breakers close URL` does not wait for it."""
    with server(url, key) as client:
        answer = client.endpoints.update(endpoint, status="active")
    _facts(answer, json=json)
    if not json and answer.get("breaker") is not None:
        from surehook.cli.delivery_text import WAITS_FOR_PROBE

        note(WAITS_FOR_PROBE)


@app.command()
def delete(endpoint: Id, yes: Yes = False, url: Url = None, key: Key = None) -> None:
    """Delete an endpoint and cancel its open deliveries."""
    confirm(f"Delete {endpoint} and cancel its open deliveries?", yes=yes)
    with server(url, key) as client:
        client.endpoints.delete(endpoint)
    note(f"deleted {endpoint}")


@app.command("rotate-secret")
def rotate_secret(
    endpoint: Id,
    overlap: Annotated[
        str,
        typer.Option(
            help="How long the old secret signs as well, such as 24h; 0s stops all others at once.",
        ),
    ] = "24h",
    yes: Yes = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> None:
    """Make a new signing secret. It is shown now and not again."""
    from surehook.cli.human_times import clock_ms, duration_s, local
    from surehook.core.instants import render

    overlap_s = round(duration_s(overlap))
    if overlap_s > SECRET_OVERLAP_MAX_S:
        from surehook.cli.errors import USAGE, CommandError

        raise CommandError(
            f"--overlap is at most {SECRET_OVERLAP_MAX_S // 86_400} days",
            hint="such as 24h or 7d",
            code=USAGE,
        )
    if not overlap_s:
        confirm(f"Stop all other secrets of {endpoint} now? Receivers that lack the new one refuse.", yes=yes)
    with server(url, key) as client:
        _with_secret(client.endpoints.rotate_secret(endpoint, overlap_s=overlap_s), json=json)
    if overlap_s:
        until = local(render(clock_ms() + overlap_s * 1000))
        note(f"the secret before it signs as well until {until}")
    else:
        note("no other secret signs any more")


@app.command("test")
def send_test(endpoint: Id, json: Json = False, url: Url = None, key: Key = None) -> int:
    """Send a test event to this endpoint alone and show what came back; exit code 7 if it failed.

    It goes out although the breaker is open or the endpoint paused; one that arrives does not close the breaker, and makes
    its next probe due at once."""
    from surehook.cli.delivery_text import attempt_lines
    from surehook.cli.errors import NOT_MET, OK

    with server(url, key) as client:
        attempt = client.endpoints.test(endpoint)
    if json:
        document(attempt)
    else:
        for text in attempt_lines(attempt):
            line(text)
    return OK if attempt["outcome"] == "delivered" else NOT_MET


def _fields(
    events: str | None, policy: str | None, header: list[str] | None, description: str | None
) -> ApiObject:
    fields: ApiObject = {}
    if events is not None:
        fields["event_types"] = [name.strip() for name in events.split(",") if name.strip()]
    if policy is not None:
        from surehook.cli.inputs import policy_of

        fields["policy"] = policy_of(policy)
    if header:
        from surehook.cli.inputs import pairs_of

        fields["headers"] = pairs_of(header)
    if description is not None:
        fields["description"] = description
    return fields


def _custom(
    method: str | None, auth: str | None, *, ca: str | None, client_cert: str | None, client_key: str | None
) -> ApiObject:
    from surehook.cli.inputs import json_of, text_of

    fields: ApiObject = {}
    if method is not None:
        fields["method"] = method.upper()
    if auth is not None:
        fields["authentication"] = json_of(auth)
    given = {"ca": ca, "client_certificate": client_cert, "client_key": client_key}
    texts = {name: text_of(text) for name, text in given.items() if text is not None}
    if texts:
        fields["tls"] = texts
    return fields


def _asked(receipts: bool | None, within: str | None) -> ApiObject:
    """The fields about receipts; a time asks for them as well."""
    if receipts is None and within is None:
        return {}
    if receipts is False:
        return {"receipts": None}
    if within is None:
        return {"receipts": {}}
    from surehook.cli.human_times import duration_s

    return {"receipts": {"finalize_within_s": round(duration_s(within))}}


def _signing(secrets: list[ApiObject]) -> str:
    """The key ids of the secrets that sign now, with the end of those that were rotated away."""
    from surehook.cli.human_times import local

    ends = {
        secret["key_id"]: f" until {local(secret['signs_until'])}"
        for secret in secrets
        if secret["signs_until"]
    }
    number = "1 signs" if len(secrets) == 1 else f"{len(secrets)} sign"
    each = ", ".join(secret["key_id"] + ends.get(secret["key_id"], "") for secret in secrets)
    return f"{number} now: {each}"


def _facts(endpoint: ApiObject, *, json: bool) -> None:
    """Print an endpoint, without the fields of its secret where that is not shown: they would look empty."""
    print_record(endpoint if json or endpoint["secret"] else _without_secret(endpoint), json=json)


def _without_secret(endpoint: ApiObject) -> ApiObject:
    return {name: value for name, value in endpoint.items() if name not in ("secret", "key_id")}


def _with_secret(endpoint: ApiObject, *, json: bool) -> None:
    print_record(endpoint, json=json)
    if not json and endpoint.get("secret"):
        line()
        note("the secret is shown only now; receivers verify with it: surehook listen --secret …")
