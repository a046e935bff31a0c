"""The model of a plain single queue behaves as queues do."""

from lab.bench.single_queue import single_queue


def test_answering_endpoints_alone_are_done_when_the_last_is_answered():
    outcome = single_queue(events=10, publish_s=10.0, answers_s=(0.5,), slots=1, horizon_s=100.0)
    assert (outcome.delivered, outcome.of, outcome.done_s) == (10, 10, 9.5)


def test_a_dead_endpoint_takes_the_only_slot_from_everybody():
    outcome = single_queue(
        events=4000, publish_s=300.0, answers_s=(0.5, 2.0, 12.0), slots=1, horizon_s=1500.0
    )
    assert outcome.done_s is None
    assert outcome.delivered < 300


def test_enough_slots_hide_the_dead_endpoint():
    outcome = single_queue(
        events=4000, publish_s=300.0, answers_s=(0.5, 2.0, 12.0), slots=1000, horizon_s=1500.0
    )
    assert outcome.delivered == outcome.of == 8000
    assert outcome.done_s is not None
    assert outcome.done_s < 303
