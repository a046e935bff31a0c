"""What a stranger and a machine may read: health, metrics, the OpenAPI document, the pages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.e2e.calling import Caller
from tests.e2e.shapes import CLOSED, KEYS
from tests.e2e.shop import Shop

OPERATIONS = """\
POST /v1/tenants
GET /v1/tenants
GET /v1/tenants/{id}
PATCH /v1/tenants/{id}
DELETE /v1/tenants/{id}
POST /v1/event-types
GET /v1/event-types
POST /v1/endpoints
GET /v1/endpoints
GET /v1/endpoints/{id}
PATCH /v1/endpoints/{id}
DELETE /v1/endpoints/{id}
POST /v1/endpoints/{id}/rotate-secret
POST /v1/endpoints/{id}/test
POST /v1/events
POST /v1/events/batch
GET /v1/events
GET /v1/events/{id}
GET /v1/events/{id}/deliveries
GET /v1/deliveries
GET /v1/deliveries/{id}
GET /v1/deliveries/{id}/attempts
POST /v1/deliveries/{id}/resend
POST /v1/deliveries/{id}/cancel
GET /v1/dead-letters
POST /v1/dead-letters/{id}/dismiss
POST /v1/replays
GET /v1/replays/{id}
GET /v1/notices
GET /v1/policies
GET /v1/policies/{name}
POST /v1/policies/preview
GET /v1/breakers
GET /v1/lanes
GET /healthz
GET /readyz
GET /metrics
""".splitlines()


@pytest.fixture(scope="module")
def document(shop: Shop) -> Any:
    return shop.api.get("/openapi.json")


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_health_is_json_and_needs_no_key(stranger: Caller, path: str) -> None:
    answer = stranger.ask("GET", path)
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert isinstance(answer.json, dict)


def test_metrics_are_for_those_with_a_key_and_count_what_happens(shop: Shop, stranger: Caller) -> None:
    assert stranger.ask("GET", "/metrics").status == 401
    _, _, event = shop.play(500, policy={"schedule": {"fixed": []}})
    shop.finished(event)
    answer = shop.api.ask("GET", "/metrics")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    lines = answer.body.decode().splitlines()
    families = {line.split()[2] for line in lines if line.startswith("# TYPE ")}
    for part in (
        "accepted",
        "attempts",
        "retries",
        "finished",
        "parked",
        "lane",
        "oldest",
        "latency",
        "lateness",
    ):
        assert any(part in name for name in families), f"nothing about {part} in {sorted(families)}"
    samples = dict(line.rsplit(" ", 1) for line in lines if line and line[0] != "#")
    assert all(float(value) >= 0 for value in samples.values())
    assert float(samples['surehook_finished_total{state="dead"}']) >= 1


def test_the_document_has_every_call_and_no_call_it_does_not_answer(document: Any, api: Caller) -> None:
    written = {
        f"{method.upper()} {path}"
        for path, item in document["paths"].items()
        for method in item
        if method in ("get", "post", "patch", "put", "delete")
    }
    assert set(OPERATIONS) <= written, set(OPERATIONS) - written
    for call in written - {"POST /v1/replays"}:
        method, path = call.split()
        path = re.sub(r"\{\w+\}", "none", path)
        answer = api.ask(method, path, {} if method in ("POST", "PATCH") else None)
        if answer.status == 404:
            assert "none" in path, (call, answer)
        assert answer.status != 405 and answer.status < 500, (call, answer)


def test_every_call_documents_its_answers_and_its_problems(document: Any) -> None:
    for path, item in document["paths"].items():
        for method, call in item.items():
            assert call["operationId"] and call["summary"], (method, path)
            assert any(status.startswith("2") for status in call["responses"]), (method, path)
            if path.startswith("/v1"):
                assert "401" in call["responses"], (method, path)
            for status, answer in call["responses"].items():
                if status[0] in "45":
                    assert "application/problem+json" in answer["content"], (method, path, status)


def test_shapes_in_the_document_are_those_of_the_contract(document: Any) -> None:
    schemas = document["components"]["schemas"]
    for kind, keys in KEYS.items():
        names = [
            name for name, schema in schemas.items() if list(schema.get("properties", {})) == keys.split()
        ]
        assert names, kind
        assert set(schemas[names[0]]["required"]) == set(keys.split()), kind
        for of, key in CLOSED:
            if of == kind:
                field = json.dumps(schemas[names[0]]["properties"][key])
                for name in re.findall(r"#/components/schemas/(\w+)", field):
                    field += json.dumps(schemas[name])
                assert all(f'"{word}"' in field for word in CLOSED[of, key].split()), (kind, key, field)


def test_every_reference_in_the_document_leads_somewhere(document: Any) -> None:
    for name in set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document))):
        assert name in document["components"]["schemas"], name
    assert document["openapi"].startswith("3.")


def test_the_documentation_is_a_page_that_loads_nothing_from_elsewhere(stranger: Caller) -> None:
    answer = stranger.ask("GET", "/docs")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/html")
    text = answer.body.decode()
    assert not re.findall(r'(?:src|href)="(?:https?:)?//', text)
    assert "/v1/events/batch" in text


def test_every_problem_type_is_a_page(api: Caller, stranger: Caller) -> None:
    problem = api.refused("GET", "/v1/events/none")
    assert stranger.ask("GET", problem["type"]).status == 200
