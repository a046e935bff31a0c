"""What a process of each role answers, and refuses in words."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from surehook.api.roles import RoleDoor


def answered(role: str, method: str, path: str) -> tuple[int, Any]:
    """The status and body of one request to a door over an application that answers 200."""
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
    asyncio.run(RoleDoor(app, role)(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])


@pytest.mark.parametrize(
    ("role", "method", "path", "status"),
    [
        ("worker", "GET", "/healthz", 200),
        ("worker", "GET", "/readyz", 200),
        ("worker", "GET", "/metrics", 200),
        ("worker", "GET", "/v1/lanes", 421),
        ("worker", "POST", "/v1/events", 421),
        ("worker", "GET", "/docs", 421),
        ("console", "POST", "/v1/events", 421),
        ("console", "POST", "/v1/events/batch", 421),
        ("console", "GET", "/v1/events", 200),
        ("console", "POST", "/v1/endpoints", 200),
    ],
)
def test_a_role_serves_its_part_and_names_who_has_the_rest(
    role: str, method: str, path: str, status: int
) -> None:
    code, body = answered(role, method, path)
    assert code == status
    if status == 421:
        assert body["code"] == "served_elsewhere"
        assert "role" in body["hint"]
