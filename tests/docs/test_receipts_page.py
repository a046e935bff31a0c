"""docs/receipts.md: its example tells, its tables and bounds are those of the code."""

from __future__ import annotations

import hmac
import re
from typing import Any, get_args

from msgspec import structs

from surehook.api.table import OPERATIONS
from surehook.core import limits, receipt_message, signature
from surehook.core.receipt import CODE_CHARS, NOTE_CHARS, STAGES
from surehook.core.receipt_message import BODY_BYTES, ITEMS
from surehook.inbox.pending_receipts import _STAGES
from surehook.inbox.receipt_batches import FIRST_S, MOST_S
from surehook.ports.inbox_runs import State
from tests.client.stand_in import answer, stand_in
from tests.docs.pages import PAGES, examples, first_column, section
from tests.inbox.house import SECRET, call, message
from tests.inbox.test_receipts import ENDPOINT, dlv, evt

PAGE = "docs/receipts.md"


def test_the_example_tells_what_was_decided(tmp_path):
    with stand_in(answer(200, {"taken": 1, "unknown": []})) as server:
        scope: dict[str, Any] = {
            "DATABASE": f"sqlite:///{tmp_path / 'app.db'}", "SECRET": SECRET, "RECEIPTS": server.url + "/v1/receipts",
        }  # fmt: skip
        exec(compile(examples(PAGE)["inbox"], PAGE, "exec"), scope)
        inbox = scope["inbox"]
        inbox.create_tables()
        for n, is_compliant in ((1, True), (2, False)):
            asked = call(*message(evt(n)), at=inbox.clock.now(), source="surehook")
            headers = [*asked.headers, ("webhook-receipts", ENDPOINT), ("webhook-delivery-id", dlv(n))]
            assert inbox.receive(structs.replace(asked, headers=headers)).status == 200
            inbox.work()
            scope["checked"](inbox.events(id=evt(n))[0].ref, is_compliant)
        inbox.send_receipts()
        inbox.close()
        said = [one.word for heard in server.heard for one in receipt_message.read(heard.body)]
        assert [(one.stage, one.code) for one in said] == [("finalized", None), ("rejected", "not_compliant")]


def test_the_table_of_states_is_that_of_the_code():
    rows = re.findall(r"^\| (`[^|]*) \| `([a-z]+)`", section(PAGE, "The receiver"), re.MULTILINE)
    told = {state: stage for states, stage in rows for state in re.findall(r"`([a-z]+)`", states)}
    assert told == _STAGES
    assert set(get_args(State)) == set(told)


def test_the_answers_are_those_of_the_call():
    (call_,) = (one for one in OPERATIONS if one.name == "take_receipts")
    named = {cell.split()[-1] for cell in first_column(section(PAGE, "On the wire")) if "_" in cell}
    assert named <= set(call_.problems)
    assert "`accepted` < `processed` < `rejected` < `finalized`" in PAGES[PAGE]
    assert STAGES == ("accepted", "processed", "rejected", "finalized")


def test_the_key_is_made_as_it_is_said():
    text = section(PAGE, "On the wire")
    (label,) = re.findall(r'"([^"\n]*)" under', text)
    material = signature.read_secret(SECRET)[1]
    assert receipt_message.receipt_key(material) == hmac.digest(material, label.encode(), "sha256")


def test_the_bounds_are_those_of_the_code():
    text = " ".join(PAGES[PAGE].split())
    assert (ITEMS, BODY_BYTES, CODE_CHARS, NOTE_CHARS) == (100, 256 * 1024, 64, 200)
    assert (
        "Up to 100 receipts and 256 KiB" in text and "`code` up to 64 and `note` up to 200 characters" in text
    )
    assert (FIRST_S, MOST_S, limits.FINALIZE_WITHIN_S) == (1, 3600, 30 * 86_400)
    assert "after 1 s at first, then up to an hour apart" in text and "(1 second to 30 days)" in text
