"""A mistake in a table or its fields is said aloud, and what it rejected takes effect when it is replayed."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from surehook.inbox.workflow import Fields
from tests.inbox.test_documents import STORY, STRICT, state, table
from tests.inbox.test_ways_out import tell, warned

RIGHT = table(**STRICT)
BLIND = replace(RIGHT, moves={kind.replace("viewed", "seen"): ways for kind, ways in RIGHT.moves.items()})


def heard_by(house, made):
    """Follow by a table, and note what takes effect."""
    house.inbox.follow(made, "partner")
    heard = []
    house.on(lambda event: heard.append(event.type))
    return heard


@pytest.mark.parametrize(
    ("fields", "code", "rule"),
    [
        (Fields(document="document", sequence="number"), "conflict", "no_number"),
        (Fields(document="document", sequence="document"), "conflict", "flaw"),
        (Fields(document="contract", sequence="n"), "no_document", "no_document"),
    ],
)
def test_events_whose_fields_were_wrong_take_effect_in_order_when_they_are_replayed(
    houses, caplog, fields, code, rule
):
    house = houses()
    wrong = heard_by(house, replace(RIGHT, fields=fields))
    tell(house, 1, 2, 4)
    assert {one.state for one in house.events()} == {"rejected"}
    assert {one.code for one in house.events()} == {code}
    lines = warned(caplog, f"[{rule}]", "and replay it")
    assert len(lines) == 3, "once for each type"
    assert lines[0].startswith("inb_") and " document.sent of partner is rejected: " in lines[0]
    right = house.twin()
    heard = heard_by(right, RIGHT)
    right.do(right.inbox.replay(reason="corrected", code=code))
    right.work()
    assert (heard, state(right, "doc_1")) == (["document.sent", "document.viewed"], "viewed")
    tell(right, 3)
    assert (heard[2:], state(right, "doc_1")) == (["document.signed"], "signed")
    right.do(right.inbox.replay(reason="corrected", code=code))
    right.work()
    assert (wrong, len(heard)) == ([], 3)
    right.close()


def test_events_of_a_type_that_the_table_lacked_take_effect_when_they_are_replayed(houses, caplog):
    house = houses()
    heard_by(house, BLIND)
    tell(house, 1, 2)
    (line,) = warned(caplog, "[unknown_type]")
    assert line.endswith("name the type in the table, and replay it")
    right = house.twin()
    heard = heard_by(right, RIGHT)
    right.do(right.inbox.replay(reason="corrected", code="conflict"))
    right.work()
    assert (heard, state(right, "doc_1")) == (["document.viewed"], "viewed")
    right.close()


def test_a_minute_of_conflicts_is_a_line_for_each_rule_of_a_type(houses, caplog):
    house = houses()
    heard_by(house, BLIND)
    for number in range(20):
        house.receive(f"evt_{number}", STORY[0], document=f"doc_{number}")
        house.receive(f"odd_{number}", STORY[0], document=f"doc_{number}", n=0)
    house.work()
    assert len(warned(caplog, "is rejected")) == 2
    assert len(warned(caplog, "[before_first]; it is recorded for people to look at")) == 1
    house.clock.passes(61)
    house.receive("evt_later", STORY[0], document="doc_1")
    house.work()
    assert len(warned(caplog, "is rejected")) == 3
