"""Noise made from the OpenAPI document: whatever comes, the answer is one that the document promises.

Values that the document allows and values that it forbids, for every call, against a house that is not empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from surehook.api import openapi
from surehook.api.table import OPERATIONS as ALL
from tests.api.house import KEY, House

EXAMPLES = 20  # per call, mode and naming: about 2,000 requests in half a minute
INGEST = {"publish", "publish_batch"}  # answered in front of the application
BASE = "http://test"

load_all_checks()
PROMISES = CHECKS.get_by_names(
    [
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
    ]
)
SCHEMA = schemathesis.openapi.from_dict(openapi.document())
OPERATIONS = {found.ok().definition.raw["operationId"]: found.ok() for found in SCHEMA.get_all_operations()}


@pytest.fixture
def filled() -> Iterator[House]:
    """A tenant with an endpoint, and deliveries in three states."""
    made = House()
    made.tenant()
    made.post("/v1/event-types", {"name": "document.signed"}, 201)
    endpoint = made.endpoint()
    event, (dead,) = made.publish(endpoint)
    made.finish(dead)
    made.finish(made.publish(endpoint)[1][0], "delivered")
    made.publish(endpoint)
    made.notice("delivery.dead")
    replay = made.post("/v1/replays", {"filter": {"tenant": "acme"}, "dry_run": True}, 202)["id"]
    made.there = {  # type: ignore[attr-defined]
        "tenants": {"id": "acme"}, "event-types": {"name": "document.signed"}, "endpoints": {"id": endpoint["id"]},
        "events": {"id": event}, "deliveries": {"id": dead}, "dead-letters": {"id": dead}, "replays": {"id": replay},
        "policies": {"name": "yousign"},
    }  # fmt: skip
    yield made
    made.close()


def sent(house: House, case: Any) -> httpx.Response:
    """The case as a request to the house."""
    told = case.as_transport_kwargs(base_url=BASE)
    parts = {
        key: told[key]
        for key in ("method", "url", "headers", "params", "json", "data", "cookies")
        if key in told
    }
    prepared = requests.Request(**parts).prepare()
    body = prepared.body.encode() if isinstance(prepared.body, str) else prepared.body
    headers = {name: value for name, value in prepared.headers.items() if name.lower() != "cookie"}
    headers["authorization"] = f"Bearer {KEY}"
    return house.call(prepared.method, prepared.url, headers=headers, content=body)


def cases() -> Iterator[tuple[str, GenerationMode, bool]]:
    """Every call with what the document allows, and with what it forbids where it forbids anything; where a path
    names a thing, with any name and with the name of one that is there."""
    for call in ALL:
        if call.name not in INGEST:
            names = "{" in call.path
            yield call.name, GenerationMode.POSITIVE, False
            if call.parameters or call.body or names:
                yield call.name, GenerationMode.NEGATIVE, False
            if names:
                yield call.name, GenerationMode.POSITIVE, True
            if names and (call.parameters or call.body):
                yield call.name, GenerationMode.NEGATIVE, True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode", "there"), list(cases()), ids=lambda value: str(getattr(value, "value", value))
)
def test_noise_is_answered_as_the_document_says(
    filled: House, name: str, mode: GenerationMode, there: bool
) -> None:
    operation = OPERATIONS[name]
    names = filled.there[operation.path.split("/")[2]] if there else None  # type: ignore[attr-defined]

    @seed(1)
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=operation.as_strategy(generation_mode=mode, path_parameters=names))
    def answered(case: Any) -> None:
        case.validate_response(sent(filled, case), checks=PROMISES)

    answered()
