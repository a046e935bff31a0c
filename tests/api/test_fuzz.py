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
from surehook.api.table import CALLS
from tests.api.house import KEY, House

EXAMPLES = 25  # per call and mode: about 2,000 requests in half a minute
INGEST = {"publish", "publish_batch"}  # answered in front of the application, and tested there
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


@pytest.fixture(scope="module")
def filled() -> Iterator[House]:
    """A tenant with an endpoint, and deliveries in three states."""
    house = House()
    house.tenant()
    endpoint = house.endpoint()
    for end in ("dead", "delivered", None):
        _, (delivery,) = house.publish(endpoint)
        if end is not None:
            house.finish(delivery, end)
    house.notice("delivery.dead")
    yield house
    house.close()


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


def cases() -> Iterator[tuple[str, GenerationMode]]:
    """Every call with what the document allows, and with what it forbids where it forbids anything."""
    for call in CALLS:
        if call.name not in INGEST:
            yield call.name, GenerationMode.POSITIVE
            if call.parameters or call.body or "{" in call.path:
                yield call.name, GenerationMode.NEGATIVE


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "mode"), list(cases()), ids=lambda value: str(getattr(value, "value", value))
)
def test_noise_is_answered_as_the_document_says(filled: House, name: str, mode: GenerationMode) -> None:
    @seed(1)
    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(case=OPERATIONS[name].as_strategy(generation_mode=mode))
    def answered(case: Any) -> None:
        case.validate_response(sent(filled, case), checks=PROMISES)

    answered()
