"""docs/inbox.md: its examples run, and its tables say what the code says."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import text

import surehook.inbox
from surehook.inbox import Inbox, rejections, sources, step_ends, undoing
from surehook.inbox.answers import CODES
from surehook.inbox.workflow import SIGNING
from surehook.ports.inbox import LINE_FULL, UNHANDLED
from surehook.verify import sign
from tests.docs.pages import examples, first_column, section
from tests.inbox.house import SECRET, call, message, partner
from tests.inbox.signers import hex_of

PAGE = "docs/inbox.md"
UNDOING = "docs/workflow.md"
OLD, NEW = "the old secret of yousign", "the new secret of yousign"
BODY = b'{"event_id":"e1","event_name":"signature_request.done","data":{"signature_request":{"id":"c1"}}}'


def ran(*names: str, url: str, **more: Any) -> dict[str, Any]:
    scope: dict[str, Any] = {"DATABASE": url, "OLD": OLD, "NEW": NEW, "SECRET": SECRET, "__name__": "example"}
    scope |= more
    for name in names:
        exec(compile(examples(PAGE)[name], PAGE, "exec"), scope)
    return scope


def prepare(url: str) -> None:
    from surehook.inbox import Inbox

    inbox = Inbox(url)
    inbox.create_tables()
    with inbox.store.engine.begin() as connection:
        connection.execute(text("create table contracts (id varchar(20), state varchar(20))"))
        connection.execute(text("insert into contracts values ('c1', 'sent')"))
    inbox.close()


def state(url: str) -> str:
    from surehook.inbox import Inbox

    inbox = Inbox(url)
    with inbox.store.engine.begin() as connection:
        found = connection.execute(text("select state from contracts")).scalar()
    inbox.close()
    return str(found)


def headers(secret: str) -> dict[str, str]:
    return {"X-Yousign-Signature-256": "sha256=" + hex_of(secret, BODY), "content-type": "application/json"}


@pytest.mark.parametrize(
    ("names", "becomes"),
    [(["fastapi"], "signed"), (["fastapi", "before"], "signed"), (["starlette"], "done")],
)
def test_the_asgi_examples_receive_and_process(names, becomes, tmp_path):
    url = f"sqlite:///{tmp_path / 'app.db'}"
    prepare(url)
    scope = ran(*names, url=url)
    inbox = scope["inbox"]

    async def go() -> None:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(scope.get("served", scope["app"])), base_url="http://app"
        ) as client:
            for secret in (OLD, NEW):
                assert (
                    await client.post("/hooks/yousign", content=BODY, headers=headers(secret))
                ).status_code == 200
            refused = await client.post("/hooks/yousign", content=BODY + b" ", headers=headers(NEW))
            assert (refused.status_code, refused.json()["code"]) == (401, "bad_signature")
            assert (await client.get("/hooks/yousign")).status_code == 405
            assert (await client.post("/hooks/other", content=BODY)).json()["code"] == "unknown_source"
        async with scope["app"].router.lifespan_context(scope["app"]):
            async with asyncio.timeout(10):
                while state(url) != becomes:  # noqa: ASYNC110 (another connection writes it)
                    await asyncio.sleep(0.02)
        closed = inbox.close()
        if closed is not None:
            await closed

    asyncio.run(go())


def test_the_flask_example_receives_and_processes(tmp_path):
    url = f"sqlite:///{tmp_path / 'app.db'}"
    prepare(url)
    scope = ran("flask", url=url)
    client = scope["app"].test_client()
    for secret in (OLD, NEW):
        assert client.post("/hooks/yousign", data=BODY, headers=headers(secret)).status_code == 200
    refused = client.post("/hooks/yousign", data=BODY + b" ", headers=headers(NEW))
    assert (refused.status_code, refused.json["code"]) == (401, "bad_signature")
    assert client.get("/hooks/yousign").status_code == 405
    scope["inbox"].work()
    assert state(url) == "signed"
    assert scope["inbox"].counts() == {"yousign": {"finalized": 1}}
    scope["inbox"].close()


def test_the_workflow_example_moves_a_document(tmp_path):
    import json

    from surehook.inbox.receive import IncomingRequest

    url = f"sqlite:///{tmp_path / 'app.db'}"
    prepare(url)
    inbox = ran("workflow", url=url)["inbox"]
    for n, type in ((2, "document.viewed"), (1, "document.sent")):
        body = json.dumps({"type": type, "subject": "c1", "sequence": n, "data": {}}).encode()
        call = IncomingRequest(
            method="POST", source="surehook", query="", url="http://app/hooks/surehook",
            headers=list(sign(SECRET, f"evt_{n}", body).items()), peer="127.0.0.1", body=body,
        )  # fmt: skip
        assert inbox.receive(call).status == 200
    inbox.work()
    assert state(url) == "viewed"
    assert any("sent → viewed" in line for line in inbox.explain("c1"))
    inbox.close()


def test_the_example_of_undoing_takes_back_what_a_handler_did(tmp_path):
    url = f"sqlite:///{tmp_path / 'app.db'}"
    prepare(url)
    inbox = Inbox(url, [sources.named("surehook", secret=SECRET)])
    inbox.follow(SIGNING, "surehook", "document.*")

    @inbox.on("surehook", "document.*", final=False)
    def moved(event, tx):
        tx.execute(text("update contracts set state = :state"), {"state": event.change.after})

    exec(compile(examples(UNDOING)["on_undo"], UNDOING, "exec"), {"inbox": inbox, "text": text})
    for n, type in enumerate(("document.sent", "document.signed"), 1):
        fields = {"subject": "c1", "sequence": n, "data": {"signer": "ana"}}
        made = call(*message(f"evt_{n}", type, **fields), at=inbox.clock.now(), source="surehook")
        assert inbox.receive(made).status == 200
    inbox.work()
    assert state(url) == "signed"
    inbox.reject(inbox.events(id="evt_2")[0].ref, "compliance")
    inbox.work()
    assert state(url) == "sent"
    inbox.close()


def test_the_table_of_answers_is_that_of_the_code():
    rows = re.findall(
        r"^\| `([a-z_]+)` \| (\d+) \| (yes|no) \|", section(PAGE, "What a sender is told"), re.MULTILINE
    )
    assert {code: (int(status), again == "yes") for code, status, again in rows} == {
        code: (status, retryable) for code, (status, _, retryable, _) in CODES.items()
    }


def test_every_code_of_a_run_is_in_the_table():
    text = "".join(path.read_text() for path in sorted(Path(surehook.inbox.__file__).parent.glob("*.py")))
    codes = set(re.findall(r'\.end\([^()]*code="([a-z_]+)"', text))
    codes |= set(re.findall(r'\.(?:failed|failed_with|dead)\([^()"]*"([a-z_]+)"', text))
    codes |= {
        "handler_failed",
        *step_ends.ENDS,
        undoing.UNDO_FAILED,
        step_ends.WAITED_TOO_LONG,
        LINE_FULL,
        step_ends.TURN_CAME,
        rejections.NO_DOCUMENT,
        *UNHANDLED,
    }  # the default of `failed_with`, and names in their place
    assert {"commit_failed", "workflow_error", "line_full", "not_wanted", "unreadable"} <= codes, (
        "it still finds them"
    )
    told = set(first_column(section(PAGE, "States")))
    assert told == codes


def test_the_example_of_on_dead_is_told(tmp_path):
    from surehook.inbox import Backoff, Inbox

    paged = []
    inbox = Inbox(f"sqlite:///{tmp_path / 'inbox.db'}", [partner()], backoff=Backoff(attempts=1))
    inbox.create_tables()
    scope = {"inbox": inbox, "page": lambda *words: paged.append(words)}
    exec(compile(examples(PAGE)["on_dead"], PAGE, "exec"), scope)
    inbox.on("partner")(lambda event, tx: 1 / 0)
    inbox.receive(call(*message("evt_1"), at=inbox.clock.now()))
    inbox.work()
    inbox.close()
    ((title, detail),) = paged
    assert title.startswith("document.signed of partner, inb_") and title.endswith("handler_failed")
    assert "ZeroDivisionError" in detail
