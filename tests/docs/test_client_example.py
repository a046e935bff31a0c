"""The page's example of the client does what it says."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from tests.cli.fake_api import DELIVERY, EVENT, KEY, delivery
from tests.client.stand_in import Heard, answer, stand_in
from tests.docs.pages import examples

TAKEN = {"id": EVENT, "deliveries": 1}


def respond(heard: Heard) -> bytes:
    path = urlsplit(heard.target).path
    if path == "/v1/events/batch":
        return answer(202, [TAKEN] * len(heard.json))
    if path == "/v1/deliveries":
        return answer(200, {"data": [delivery(state="dead")], "next": None})
    if path == "/v1/events" and heard.json["tenant"] == "nobody":
        return answer(422, {"code": "unknown_tenant", "detail": "There is none.", "hint": "POST /v1/tenants"})
    return answer(202, TAKEN)


def test_the_example_of_the_client_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with stand_in(respond) as server:
        scope = {"URL": server.url, "KEY": KEY}
        exec(compile(examples("docs/api.md")["client"], "docs/api.md", "exec"), scope)
    asked = [f"{heard.method} {urlsplit(heard.target).path}" for heard in server.heard]
    assert asked == [
        "POST /v1/tenants", "POST /v1/events", "POST /v1/events/batch", "GET /v1/deliveries",
        f"POST /v1/deliveries/{DELIVERY}/resend", "POST /v1/events",
    ]  # fmt: skip
    assert [sent.id for sent in scope["answers"]] == [EVENT, EVENT]  # type: ignore[attr-defined]
    assert capsys.readouterr().out == "unknown_tenant POST /v1/tenants\n"
