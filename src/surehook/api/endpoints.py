"""/v1/endpoints"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from surehook.api import breakers, query, show
from surehook.api.bodies import given, stored
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core import hints, ids, limits, redact, url
from surehook.core.answers import AttemptOut, EndpointOut, SecretOut
from surehook.core.authentication import Authentication
from surehook.core.json_value import JsonObject
from surehook.core.model import Endpoint, EndpointTls, Method, Secret
from surehook.core.receipt import Wanted
from surehook.delivery import endpoints, testcall
from surehook.delivery.deliveries import policy_of

Url = Annotated[str, Meta(min_length=1, max_length=url.CHARS_MAX, description="Where requests go.")]
EventTypes = Annotated[
    list[str],
    Meta(
        min_length=1,
        max_length=limits.FILTERS,
        description="Event types (`document.signed`), prefixes (`document.*`), or `*`.",
    ),
]
PolicyReference = Annotated[
    str | JsonObject | None,
    Meta(
        description="A profile's name, an object that starts from one and says what differs, or null "
        "for the event type's policy, else `standard`."
    ),
]
Headers = Annotated[
    dict[str, str],
    Meta(
        max_length=limits.HEADERS,
        description="Headers sent with every request, beside those of surehook. Values under names that look like "
        f"secrets are shown as {redact.HIDDEN} and stay as they are where that is written back; credentials belong "
        "into `authentication`.",
    ),
]
Order = Annotated[str, Meta(description="Only `none` is available in this version.")]
Description = Annotated[str, Meta(max_length=limits.DESCRIPTION_CHARS)]
Shown = Annotated[
    Authentication | None,
    Meta(
        description="How requests show who calls. Secrets in it are kept and never shown again; "
        "a change gives the whole object anew, null takes it away."
    ),
]
Tls = Annotated[
    EndpointTls | None,
    Meta(
        description="PEM texts: authorities to trust in place of the system's, a client certificate with its key. "
        "The key is never shown again; a change gives the whole object anew, null takes it away."
    ),
]


class Receipts(Struct, forbid_unknown_fields=True):
    """What is wanted of receipts; null in its place: they are not asked for."""

    finalize_within_s: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=limits.FINALIZE_WITHIN_S,
                description="Seconds after which a delivery without a final word is told of (`delivery.unfinalized`).",
            ),
        ]
        | None
    ) = None

    def wanted(self) -> Wanted:
        return Wanted(self.finalize_within_s)


class NewEndpoint(Struct, forbid_unknown_fields=True):
    tenant: Annotated[str, Meta(min_length=1, max_length=limits.TENANT_CHARS)]
    url: Url
    event_types: EventTypes
    policy: PolicyReference = None
    headers: Headers | None = None
    order: Order | None = None
    description: Description | None = None
    method: Method = "POST"
    authentication: Shown = None
    tls: Tls = None
    receipts: Receipts | None = None


class EndpointChange(Struct, forbid_unknown_fields=True):
    url: Url | UnsetType = UNSET
    event_types: EventTypes | UnsetType = UNSET
    policy: PolicyReference | UnsetType = UNSET
    headers: Headers | UnsetType = UNSET
    order: Order | UnsetType = UNSET
    description: Description | UnsetType | None = UNSET
    status: Literal["active", "paused"] | UnsetType = UNSET
    method: Method | UnsetType = UNSET
    authentication: Shown | UnsetType = UNSET
    tls: Tls | UnsetType = UNSET
    receipts: Receipts | UnsetType | None = UNSET


class Rotation(Struct, forbid_unknown_fields=True):
    overlap_s: Annotated[
        int,
        Meta(ge=0, le=limits.SECRET_OVERLAP_MAX_S, description="Seconds the secrets before it sign on."),
    ] = endpoints.OVERLAP_S


async def create(asked: ApiRequest) -> ApiAnswer:
    body: NewEndpoint = asked.body
    new = endpoints.New(
        tenant=body.tenant,
        url=body.url,
        event_types=body.event_types,
        policy=stored(body.policy),
        headers=body.headers or {},
        order=body.order or "none",
        description=body.description,
        method=body.method,
        authentication=body.authentication,
        tls=body.tls,
        receipts=None if body.receipts is None else body.receipts.wanted(),
    )
    made, secret = await endpoints.create(asked.services.engine, new)
    shape = _shown(asked, made, secret)
    return ApiAnswer(shape, 201, {"location": f"/v1/endpoints/{shape.id}"})


async def list_all(asked: ApiRequest) -> ApiAnswer:
    page = await asked.services.engine.ledger.endpoints(
        tenant=asked.query.get("tenant"),
        status=asked.query.get("status"),
        limit=asked.limit,
        after=asked.after,
    )
    return asked.page(page, partial(_shown, asked))


async def get(asked: ApiRequest) -> ApiAnswer:
    return ApiAnswer(_shown(asked, await endpoints.find(asked.services.engine, _id(asked))))


async def list_secrets(asked: ApiRequest) -> ApiAnswer:
    engine, id = asked.services.engine, _id(asked)
    await endpoints.find(engine, id)
    return asked.rows(show.signing(await endpoints.signing(engine, id)), None)


async def change(asked: ApiRequest) -> ApiAnswer:
    changes = given(asked.body)
    if "policy" in changes:
        changes["policy"] = stored(changes["policy"])
    if isinstance(changes.get("receipts"), Receipts):
        changes["receipts"] = changes["receipts"].wanted()
    services = asked.services
    if redact.HIDDEN in changes.get("headers", {}).values():
        changes["headers"] = await _with_hidden(asked, changes["headers"])
    return ApiAnswer(
        _shown(asked, await endpoints.change(services.engine, services.chores, _id(asked), changes))
    )


async def remove(asked: ApiRequest) -> ApiAnswer:
    await endpoints.remove(asked.services.engine, asked.services.chores, _id(asked))
    return ApiAnswer(None, 204)


async def rotate_secret(asked: ApiRequest) -> ApiAnswer:
    found, secret = await endpoints.rotate_secret(
        asked.services.engine, _id(asked), overlap_s=asked.body.overlap_s
    )
    return ApiAnswer(_shown(asked, found, secret))


async def test(asked: ApiRequest) -> ApiAnswer:
    engine, endpoint = asked.services.engine, _id(asked)
    seen = await testcall.call(engine, endpoint)
    shape = show.attempt(seen, await policy_of(engine, endpoint, testcall.EVENT_TYPE))
    held = breakers.held(engine, endpoint)
    if held is not None and shape.outcome == "delivered":
        shape = replace(shape, hint=hints.HELD)
    return ApiAnswer(shape)


def _shown(asked: ApiRequest, seen: Endpoint, made: Secret | None = None) -> EndpointOut:
    return show.endpoint(seen, made, breaker=breakers.held(asked.services.engine, seen.id))


async def _with_hidden(asked: ApiRequest, written: dict[str, str]) -> dict[str, str]:
    """Headers as they were read from us and are written back: what was shown hidden stays as it is."""
    known = (await endpoints.find(asked.services.engine, _id(asked))).headers
    kept = {name.lower(): value for name, value in known.items() if redact.is_secret(name)}
    return {
        name: kept.get(name.lower(), value) if value == redact.HIDDEN else value
        for name, value in written.items()
    }


def _id(asked: ApiRequest) -> bytes:
    return asked.id(ids.ENDPOINT, "endpoint")


STATUSES = ("active", "paused", "inactive", "failure")
URL_CODES = (
    "https_required", "url_syntax", "url_scheme", "url_userinfo", "url_fragment", "url_host_syntax", "url_host_ambiguous",
    "url_host_name", "url_port", "url_too_long",
)  # fmt: skip
_REFUSALS = (
    "invalid_filter", "invalid_policy", "unknown_policy", "invalid_header", "invalid_authentication",
    "authentication_conflict", "invalid_tls", "order_not_available", *URL_CODES, "address_forbidden", "too_many_calls",
)  # fmt: skip

OPERATIONS = (
    Operation(
        method="POST", path="/v1/endpoints", name="create_endpoint", handle=create, body=NewEndpoint,
        body_limit=limits.ENDPOINT_BODY_BYTES,
        about="Make an endpoint. Its `secret` is shown in this answer and after a rotation only.",
        answers={201: EndpointOut}, problems=("unknown_tenant", "too_many_endpoints", *_REFUSALS),
    ),
    Operation(
        method="GET", path="/v1/endpoints", name="list_endpoints", handle=list_all,
        about="Endpoints, newest first.", answers={200: EndpointOut}, is_list=True,
        query=(query.tenant(), query.one_of("status", STATUSES, "Status of the endpoint.")),
    ),
    Operation(
        method="GET", path="/v1/endpoints/{id}", name="get_endpoint", handle=get, about="One endpoint.",
        answers={200: EndpointOut}, problems=("not_found",),
    ),
    Operation(
        method="PATCH", path="/v1/endpoints/{id}", name="change_endpoint", handle=change, body=EndpointChange,
        body_limit=limits.ENDPOINT_BODY_BYTES,
        about="Change, pause or activate an endpoint. `active` sets `failure_count` to 0 and sends what was parked.",
        detail="An open breaker is not closed by it: `breaker` of the answer shows it, its next probe is due now, and what "
        "is parked goes out when that is delivered (or after `POST /v1/breakers/close`).",
        answers={200: EndpointOut}, problems=("not_found", *_REFUSALS),
    ),
    Operation(
        method="DELETE", path="/v1/endpoints/{id}", name="delete_endpoint", handle=remove,
        about="Delete an endpoint. Its open deliveries are cancelled, reason `deleted`.", answers={204: None},
        problems=("not_found",),
    ),
    Operation(
        method="GET", path="/v1/endpoints/{id}/secrets", name="list_secrets", handle=list_secrets,
        about="Which secrets sign now, newest first, and until when. What they are is never shown.",
        answers={200: SecretOut}, is_list=True, problems=("not_found",),
    ),
    Operation(
        method="POST", path="/v1/endpoints/{id}/rotate-secret", name="rotate_secret", handle=rotate_secret,
        body=Rotation, body_optional=True, about="Give an endpoint a new secret; the ones before it sign on for a while.",
        answers={200: EndpointOut}, problems=("not_found", "too_many_secrets"),
    ),
    Operation(
        method="POST", path="/v1/endpoints/{id}/test", name="test_endpoint", handle=test,
        about="Send one signed request (`surehook.test`) now, and answer with what came of it. Nothing is stored.",
        detail="An open breaker neither holds it back nor counts it. One that was delivered makes the next probe due now, and "
        "says so in `hint`: deliveries stay parked until that probe is delivered as well.",
        answers={200: AttemptOut}, problems=("not_found", "too_many_calls"),
    ),
)  # fmt: skip
