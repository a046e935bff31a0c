"""The workflow's public face: reading events, one table for one document type."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from surehook.inbox import workflow
from surehook.inbox.workflow import SIGNING, Fields, NoDocument, Workflow, WorkflowError, Workflows


class Event(NamedTuple):
    id: str
    type: str | None
    body: Any


def event(kind: str = "document.signed", **body: Any) -> Event:
    return Event("evt_1", kind, {"subject": "doc_1", "sequence": 3, **body})


def test_surehooks_own_body_is_read_without_saying_how():
    body = {
        "workflow_version": "2",
        "causation_id": "evt_0",
        "data": {"signer": "ana", "remediation_token": "t"},
    }
    document, arrival = Workflow(SIGNING).read(event(**body))
    assert document == "doc_1"
    assert arrival == workflow.Arrival(
        id="evt_1", type="document.signed", sequence=3, version="2", cause="evt_0", party="ana", token="t"
    )


def test_each_source_may_have_its_own_paths():
    fields = {"other": Fields(document="doc.id", sequence="doc.n", party="who.0")}
    contracts = Workflow(SIGNING, fields=fields)
    body = {"doc": {"id": 42, "n": "7"}, "who": ["ana", "bob"]}
    document, arrival = contracts.read(Event("e", "recipient.signed", body), source="other")
    assert (document, arrival.sequence, arrival.party) == ("42", 7, "ana")
    assert contracts.read(event(), source="third")[0] == "doc_1"


def test_a_source_without_numbers_is_refused_in_strict_order():
    with pytest.raises(WorkflowError, match="strict_without_sequence"):
        Workflow(SIGNING, fields={"other": Fields(document="doc.id")})
    free = replace(SIGNING, order=workflow.Order(mode="free"))
    Workflow(free, fields={"other": Fields(document="doc.id")})


@pytest.mark.parametrize("subject", [None, "", "x" * 256, ["doc"], {"id": 1}, "a\nb", True, 1.5])
def test_an_event_without_a_document_is_nobodys(subject):
    with pytest.raises(NoDocument):
        Workflow(SIGNING).read(event(subject=subject))
    with pytest.raises(NoDocument):
        Workflow(SIGNING).read(Event("e", "document.sent", subject))


@pytest.mark.parametrize(
    "body",
    [{"sequence": -1}, {"sequence": 1.5}, {"sequence": True}, {"sequence": 2**63}, {"sequence": "three"}, {"sequence": []},
     {"workflow_version": {}}, {"workflow_version": ""}, {"causation_id": 1.5}, {"data": {"signer": ["ana"]}},
     {"data": {"signer": "a\x00"}}],
)  # fmt: skip
def test_what_cannot_be_read_is_a_conflict_and_no_exception(body):
    contracts = Workflow(SIGNING)
    _, arrival = contracts.read(event(**body))
    assert arrival.flaw is not None
    if arrival.sequence is not None:
        arrival = replace(arrival, sequence=1)
    decision = contracts.decide(None, arrival, now=0)
    assert (decision.verdict, decision.own.rule, decision.document.state) == ("conflict", "flaw", "draft")


def test_a_token_may_be_judged_by_the_program():
    contracts = Workflow(SIGNING, is_token=lambda document, token: (document, token) == ("doc_1", "good"))
    assert contracts.read(event(data={"remediation_token": "good"}))[1].remediated
    assert not contracts.read(event(data={"remediation_token": "bad"}))[1].remediated
    assert not contracts.read(event())[1].remediated


def test_two_tables_for_one_document_type_are_an_error():
    workflows = Workflows(SIGNING)
    for second in (SIGNING, replace(SIGNING, version="2"), Workflow(SIGNING)):
        with pytest.raises(WorkflowError, match=r"has (a|this) table already"):
            workflows.add(second)
    workflows.add(replace(SIGNING, document_type="lease"))
    assert [one.document_type for one in workflows] == ["signing", "lease"]
    assert len(workflows) == 2
    assert workflows["lease"].table.document_type == "lease"
    with pytest.raises(WorkflowError, match="no table"):
        workflows["will"]


def test_a_workflow_knows_its_types_and_their_other_names():
    contracts = Workflow(SIGNING)
    assert contracts.concerns("document.signed")
    assert contracts.concerns("recipient.signed")
    assert not contracts.concerns("invoice.paid")
    assert not contracts.concerns(None)


def test_everything_that_is_stored_goes_through_json():
    import msgspec

    contracts = Workflow(SIGNING)
    decision = contracts.decide(None, contracts.read(event())[1], now=0)
    for value in (decision.document, *decision.steps):
        assert msgspec.json.decode(msgspec.json.encode(value), type=type(value)) == value
    assert contracts.release(decision.document, now=0).steps[-1].released


def test_every_public_name_is_there():
    assert all(hasattr(workflow, name) for name in workflow.__all__)
