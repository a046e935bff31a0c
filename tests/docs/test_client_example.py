"""The examples of the page on clients do what they say."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import urlsplit

import pytest

from surehook.client import ClientError, Unreachable
from surehook.client.recording import RecordingClient
from tests.cli.fake_api import DELIVERY, EVENT, KEY, delivery, endpoint
from tests.client.stand_in import Heard, answer, stand_in
from tests.docs.pages import examples

PAGE = "docs/client.md"
TAKEN = {"id": EVENT, "deliveries": 1}
TENANT = {"id": "acme", "name": "Acme", "strict": False, "created_at": "2026-11-21T10:46:00.000Z"}
ENDPOINT = endpoint(secret="whsec_c2VjcmV0", key_id="sec_1")


def respond(heard: Heard) -> bytes:
    match f"{heard.method} {urlsplit(heard.target).path}":
        case "POST /v1/tenants":
            return answer(201, TENANT)
        case "POST /v1/endpoints":
            return answer(201, ENDPOINT)
        case "POST /v1/events/batch":
            return answer(202, [TAKEN] * len(heard.json))
        case "GET /v1/deliveries":
            return answer(200, {"data": [delivery(state="dead")], "next": None})
        case "POST /v1/events" if heard.json["tenant"] == "nobody":
            return answer(
                422, {"code": "unknown_tenant", "detail": "There is none.", "hint": "POST /v1/tenants"}
            )
        case "POST /v1/events":
            return answer(202, TAKEN)
    return answer(200, delivery())


def test_the_example_of_the_client_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with stand_in(respond) as server:
        scope: dict[str, Any] = {"URL": server.url, "KEY": KEY}
        exec(compile(examples(PAGE)["client"], PAGE, "exec"), scope)
    asked = [f"{heard.method} {urlsplit(heard.target).path}" for heard in server.heard]
    assert asked == [
        "POST /v1/tenants", "POST /v1/endpoints", "POST /v1/events", "POST /v1/events/batch", "GET /v1/deliveries",
        f"POST /v1/deliveries/{DELIVERY}/resend", "POST /v1/events",
    ]  # fmt: skip
    assert [sent.id for sent in scope["answers"]] == [EVENT, EVENT]
    assert capsys.readouterr().out == (
        "the receiver needs this secret: whsec_c2VjcmV0\nunknown_tenant POST /v1/tenants\n"
    )


def test_the_example_of_the_asynchronous_client_runs(capsys: pytest.CaptureFixture[str]) -> None:
    with stand_in(respond) as server:
        scope: dict[str, Any] = {"URL": server.url, "KEY": KEY}
        exec(compile(examples(PAGE)["async_client"], PAGE, "exec"), scope)
        asyncio.run(scope["main"]())
    assert capsys.readouterr().out == f"{DELIVERY} dead\n"


def sign(document: str, hooks: Any) -> None:
    """An application: the document is signed, whatever becomes of the event."""
    try:
        hooks.send("document.signed", {"document": document}, tenant="acme", subject=document)
    except ClientError:
        return


def test_the_example_of_the_recording_client_runs() -> None:
    scope: dict[str, Any] = {"sign": sign, "Unreachable": Unreachable}
    exec(compile(examples(PAGE)["recording"], PAGE, "exec"), scope)
    for name in ("test_signing_tells_everybody", "test_signing_stands_although_the_server_is_away"):
        scope[name](RecordingClient())
