"""Requests are what the plan says."""

import json

from lab.bench.publisher import Publisher
from lab.bench.records import Plan
from surehook.core import ids


def publisher(**plan):
    return Publisher(Plan(port=1, key="k", tenant="acme", types=("a.b", "a.c"), **plan))


def body(hand):
    head, _, rest = hand.request.partition(b"\r\n\r\n")
    assert f"content-length: {len(rest)}".encode() in head
    return json.loads(rest)


def test_an_event_has_the_planned_size():
    rest = publisher().hand(0).request.partition(b"\r\n\r\n")[2]
    assert 590 <= len(rest) <= 600
    rest = publisher(own_ids=True).hand(0).request.partition(b"\r\n\r\n")[2]
    assert 590 <= len(rest) <= 600


def test_types_are_dealt_in_turn_and_events_are_numbered():
    made = publisher()
    events = [body(made.hand(0)) for _ in range(3)]
    assert [event["type"] for event in events] == ["a.b", "a.c", "a.b"]
    assert [event["data"]["number"] for event in events] == [0, 1, 2]


def test_a_batch_is_a_list_of_events():
    hand = publisher(mode="batch", batch=50).hand(0)
    assert len(body(hand)) == hand.count == 50


def test_own_ids_are_event_ids_and_differ():
    made = publisher(own_ids=True)
    own = {body(made.hand(0))["id"] for _ in range(100)}
    assert len(own) == 100
    assert all(ids.try_parse("evt", one) for one in own)


def test_an_answer_is_read_by_event_and_a_problem_inside_a_batch_is_seen():
    answers = publisher(mode="batch").answers(
        b'[{"id":"evt_1","deliveries":2},{"type":"t","code":"bad","status":422}]'
    )
    assert [(item.id, item.deliveries, item.code) for item in answers] == [
        ("evt_1", 2, None),
        (None, 0, "bad"),
    ]
