"""The delivery contract is what the code does: its examples run, its tables are the product's."""

from __future__ import annotations

import re
import sqlite3
import time

import msgspec
import pytest

from surehook.core import envelope, ids, limits, outcome, signature, verdict
from surehook.core.http1.answer import STRANGERS
from surehook.core.http1.answer_head import HEADERS_KEPT_BYTES
from surehook.core.model import Delivery, Endpoint, Secret
from surehook.core.profiles import PROFILES
from surehook.core.receipt import Wanted
from surehook.core.signature import Signer
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.endpoints import OVERLAP_S
from surehook.delivery.heads import static_heads
from surehook.delivery.plans import Plan
from surehook.delivery.request import header_lines
from surehook.delivery.settings import EngineSettings
from tests.docs.pages import PAGES, examples, first_column, function, section

PAGE = "docs/delivery-contract.md"
TEXT = PAGES[PAGE]
MATERIAL = b"k" * 32
SECRET = signature.write_secret("v1", MATERIAL)
EVENT = ids.uuid7(1_700_000_000_000, b"0123456789")
BODY = envelope.render_body(
    id=ids.text(ids.EVENT, EVENT), type="document.signed", timestamp="2026-11-21T10:46:00.123Z", tenant="acme",
    schema_version="1", data=b'{"document": "doc_1"}',
)  # fmt: skip


def sent(*, profile="standard", replay_of=None, now=None, secrets=(MATERIAL,), receipts=None):
    """The headers of one request, made by the code that makes all of them."""
    endpoint = Endpoint(
        id=b"e" * 16, tenant="acme", url="https://example.com/hooks", event_types=("*",), policy=None,
        status="active", reason=None, failure_count=0, order="none", headers={}, description=None,
        created_at=0, updated_at=0, receipts=receipts,
    )  # fmt: skip
    route = EndpointState(endpoint, None, 32)
    route.head, route.private = static_heads(endpoint)
    signer = Signer(
        [Secret(id=b"s" * 16, endpoint=b"e" * 16, kind="v1", material=one, created_at=0, expires_at=None) for one in secrets],
        [f"sec_{place}" for place, _ in enumerate(secrets)],
    )  # fmt: skip
    delivery = Delivery(
        id=ids.delivery_id(EVENT, b"abcdef"), event=EVENT, endpoint=b"e" * 16, tenant="acme", type="document.signed",
        lane=0, attempt=1, due_at=0, born_at=0, body=BODY, replay_of=replay_of,
    )  # fmt: skip
    at = int(time.time() * 1000) if now is None else now
    lines = header_lines(route, Plan(PROFILES[profile]), signer, delivery, now=at).decode().splitlines()
    return dict(line.split(": ", 1) for line in lines)


# -- verifying ----------------------------------------------------------------------------------------------


def test_the_example_believes_what_the_product_sends():
    is_genuine = function(PAGE, "verify", "is_genuine")
    assert is_genuine(SECRET, sent(), BODY)


def test_the_example_believes_either_secret_of_a_rotation():
    is_genuine = function(PAGE, "verify", "is_genuine")
    assert is_genuine(SECRET, sent(secrets=(b"n" * 32, MATERIAL)), BODY)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (sent(), BODY + b" "),
        (sent(secrets=(b"n" * 32,)), BODY),
        (sent() | {"webhook-id": "evt_other"}, BODY),
        (sent() | {"webhook-timestamp": "soon"}, BODY),
        (sent(now=int(time.time() - 400) * 1000), BODY),
        (sent(now=int(time.time() + 86_400) * 1000), BODY),  # collected long before it runs
    ],
    ids=["another body", "another secret", "another id", "no time", "too old", "too new"],
)
def test_the_example_refuses(headers, body):
    assert not function(PAGE, "verify", "is_genuine")(SECRET, headers, body)


def test_the_example_of_the_readme_verifies_and_names_the_id():
    receive = function("README.md", "verify", "receive")
    assert receive(SECRET, sent(), BODY) == (204, ids.text(ids.EVENT, EVENT))
    assert receive(SECRET, sent(), BODY + b" ") == (401, None)


# -- the request --------------------------------------------------------------------------------------------


def test_every_header_is_in_the_table_and_no_other():
    listed = first_column(section(PAGE, "Headers"))
    assert sorted(listed) == sorted(sent(replay_of=b"r" * 16, receipts=Wanted()))
    assert set(listed) - set(sent()) == {"webhook-replay", "webhook-receipts"}


def test_what_the_table_calls_the_same_is_the_same_on_a_later_attempt():
    now = sent(now=1_700_000_000_000)
    later = sent(now=1_700_000_400_000)
    same = re.findall(r"^\| `([a-z-]+)` \| yes", section(PAGE, "Headers"), re.MULTILINE)
    assert same == ["content-type", "webhook-id", "webhook-delivery-id"]
    assert all(now[name] == later[name] for name in same)


def test_the_names_that_policies_add_are_those_of_the_profiles():
    for policy in PROFILES.values():
        for name in (policy.headers.retry_count, policy.headers.delivery_id):
            assert name is None or name in TEXT


def test_the_example_body_is_one_that_is_sent():
    shown = re.search(r"```json\n(.*?)\n```", TEXT, re.DOTALL)[1].encode()
    fields = msgspec.json.decode(shown)
    assert ids.try_parse(ids.EVENT, fields["id"]) is not None
    again = envelope.render_body(**(fields | {"data": envelope.split_data(shown)}))
    assert again == shown


def test_the_fields_of_the_body_are_in_the_table():
    listed = first_column(section(PAGE, "The request").partition("### Headers")[0])
    assert listed == [
        "id", "type", "timestamp", "tenant", "schema_version", "subject", "sequence",
        "workflow_version", "correlation_id", "causation_id", "source", "data",
    ]  # fmt: skip
    everything = envelope.render_body(**{name: name for name in listed} | {"data": b"1", "sequence": 1})
    assert list(msgspec.json.decode(everything)) == listed


# -- the answer ---------------------------------------------------------------------------------------------


def test_the_example_verdict_ends_a_delivery():
    head, _, body = examples(PAGE)["verdict"].partition("\n\n")
    status_line, _, lines = head.partition("\n")
    status = int(status_line.split()[1])
    headers = lines.replace("\n", "\r\n").encode() + b"\r\n"
    read = verdict.verdict(headers, body.encode())
    assert read is not None
    assert not read.retryable
    result = outcome.classify(
        policy=PROFILES["standard"], success=outcome.succeeds(PROFILES["standard"]), lane=0, probe=False,
        status=status, failure=None, headers=headers, body=body.encode(), now=0,
    )  # fmt: skip
    assert (result.name, result.terminal) == ("rejected", True)


def test_the_statuses_of_verdicts_are_those_of_the_code():
    row = next(line for line in TEXT.splitlines() if '"retryable": false' in line and line.startswith("|"))
    assert {int(status) for status in re.findall(r"\b\d{3}\b", row)} == outcome.VERDICT_STATUSES


def test_the_statuses_that_ask_for_patience_are_those_of_the_code():
    row = next(line for line in TEXT.splitlines() if line.startswith("| 429"))
    assert {int(status) for status in re.findall(r"\b\d{3}\b", row)} == outcome.THROTTLE_WITH_HEADER | {429}


# -- dedupe -------------------------------------------------------------------------------------------------


def test_the_example_applies_an_event_once():
    process = function(PAGE, "dedupe", "process")
    database = sqlite3.connect(":memory:")
    database.execute("create table processed (id text primary key)")
    applied = []
    for _ in range(3):
        process(database, "evt_1", lambda _: applied.append("evt_1"))
    assert applied == ["evt_1"]


def test_the_example_forgets_the_id_of_an_effect_that_failed():
    process = function(PAGE, "dedupe", "process")
    database = sqlite3.connect(":memory:")
    database.execute("create table processed (id text primary key)")
    with pytest.raises(ZeroDivisionError):
        process(database, "evt_1", lambda _: 1 / 0)
    assert database.execute("select count(*) from processed").fetchone() == (0,)


# -- figures ------------------------------------------------------------------------------------------------


def test_the_figures_are_those_of_the_code():
    engine = EngineSettings()
    for written in (
        f"at most {limits.EVENT_BODY_BYTES // 1024} KiB",
        f"up to {limits.HEADERS} headers",
        f"first {HEADERS_KEPT_BYTES // 1024} KiB of your headers and {STRANGERS.body_kept_bytes // 1024} KiB of your body",
        f"up to {engine.slots_first} requests a lane",
        f"results wait {engine.record_window_s * 1000:g} ms",
        f"{OVERLAP_S // 3600} hours",
        f"at most {engine.endpoint_slots} requests in flight",
        f"keeps events for {engine.retention_events_s / 86_400:g} days",
    ):
        assert written in " ".join(TEXT.split())
    assert limits.TOLERANCE_S == 300
    assert engine.slots_first == engine.slots_retry
