"""What a table could not read is decided on anew when it is replayed, once the table or its fields are corrected."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from surehook.core.workflow.decide import Arrival, Decision, Document, Order, decide, put_off, release
from surehook.core.workflow.signing import SIGNING

NOW = 1_700_000_000_000
SENT, SIGNED, LAPSED = "document.sent", "document.signed", "document.lapsed"
STOP = replace(SIGNING, on_conflict="stop")
BUFFER = replace(SIGNING, order=Order(mode="buffer", wait_s=60, then="skip"))
FREE = replace(SIGNING, order=Order(mode="free"))


def having(table):
    """The table with one more type."""
    return replace(table, moves={**table.moves, LAPSED: {"sent": "expired"}})


def told(table, *events: Arrival, document: Document | None = None) -> Decision:
    for event in events:
        decision = decide(table, document, event, NOW)
        document = decision.document
    return decision


def said(decision: Decision) -> tuple[str, str, str]:
    assert decision.own is not None
    return decision.own.verdict, decision.own.rule, decision.document.state


@pytest.mark.parametrize("flaw", [None, "data.number is no number"])
def test_an_event_whose_number_was_not_found_takes_effect_with_its_number(flaw):
    first = Arrival(id="a", type=SENT, flaw=flaw)
    before = told(SIGNING, first)
    assert said(before) == ("conflict", "flaw" if flaw else "no_number", "draft")
    assert said(told(SIGNING, first, document=before.document))[0] == "conflict", "nothing was corrected"
    after = told(SIGNING, Arrival(id="a", type=SENT, sequence=1), document=before.document)
    assert said(after) == ("applied", "move", "sent")
    assert (
        said(told(SIGNING, Arrival(id="a", type=SENT, sequence=1), document=after.document))[0] == "duplicate"
    )


def test_it_waits_for_what_is_missing_before_it():
    before = told(SIGNING, Arrival(id="b", type=SIGNED), Arrival(id="a", type=SENT))
    early = told(SIGNING, Arrival(id="b", type=SIGNED, sequence=2), document=before.document)
    assert said(early) == ("early", "gap", "draft")
    after = told(SIGNING, Arrival(id="a", type=SENT, sequence=1), document=early.document)
    assert [(one.event, one.verdict) for one in after.steps] == [("a", "applied"), ("b", "applied")]


def test_others_wait_for_it_while_it_is_tried_again():
    again = Arrival(id="a", type=SENT, sequence=1)
    before = told(SIGNING, Arrival(id="a", type=SENT))
    kept = put_off(SIGNING, before.document, again, NOW, back_at=NOW + 60_000)
    assert [one.event for one in kept.retried] == [again]


@pytest.mark.parametrize(
    ("table", "number"), [(SIGNING, 2), (BUFFER, 2), (BUFFER, None), (FREE, 2), (FREE, None)]
)
def test_an_event_of_a_type_that_the_table_lacked_takes_effect_once_it_has_it(table, number):
    event = Arrival(id="b", type=LAPSED, sequence=number)
    before = told(table, Arrival(id="a", type=SENT, sequence=1), event)
    assert said(before) == ("conflict", "unknown_type", "sent")
    assert said(told(table, event, document=before.document)) == ("conflict", "unknown_type", "sent")
    after = told(having(table), event, document=before.document)
    assert said(after) == ("applied", "move", "expired")
    assert said(told(having(table), event, document=after.document))[0] == "duplicate"


def test_a_document_goes_on_when_the_event_at_which_it_stands_still_is_replayed_by_a_table_that_has_its_type():
    event = Arrival(id="b", type=LAPSED, sequence=2)
    last = Arrival(id="c", type="certificate.attached", sequence=3)
    before = told(STOP, Arrival(id="a", type=SENT, sequence=1), event, last)
    assert before.document.stopped == event
    assert said(told(STOP, event, document=before.document))[0] == "duplicate", "it stands still at it"
    after = told(having(STOP), event, document=before.document)
    assert [(one.event, one.verdict) for one in after.steps] == [("b", "applied"), ("c", "informational")]
    assert after.document.stopped is None


def test_what_a_person_let_pass_stays_without_effect():
    event = Arrival(id="b", type=LAPSED, sequence=2)
    before = told(STOP, Arrival(id="a", type=SENT, sequence=1), event)
    gone_on = release(STOP, before.document, NOW)
    assert said(told(having(STOP), event, document=gone_on.document))[0] == "duplicate"
