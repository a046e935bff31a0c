"""The world's own book sees every breach of the ledger's contract, and nothing in honest work."""

from __future__ import annotations

from lab.sim.book import CHURN, Book, Moment, Row
from surehook.core.model import Attempt, Delivery, Event, Settled
from surehook.ports.ledger import AcceptResult, Incoming, Recorded, Taken

NODE, OTHER = b"n" * 16, b"o" * 16
EVENT, ROW, ENDPOINT = b"e" * 16, b"d" * 16, b"p" * 16


class Time:
    """A time that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def delivery(
    *, held: bool = True, parked: str | None = None, attempt: int = 1, due_at: int = 1_000
) -> Delivery:
    return Delivery(
        id=ROW, event=EVENT, endpoint=ENDPOINT, tenant="t", type="a", lane=0, attempt=attempt, due_at=due_at,
        born_at=0, body=b"{}", held=held, parked=parked,
    )  # fmt: skip


def book(*, held: bool = True, parked: str | None = None, due_at: int = 1_000) -> Book:
    """A book with one delivery, accepted by NODE; OTHER is alive as well."""
    made = Book(Time())
    made.entered(NODE)
    made.entered(OTHER)
    event = Event(
        id=EVENT, tenant="t", type="a", schema_version="1", subject=None, sequence=None, workflow_version=None,
        correlation_id=None, causation_id=None, source=None, occurred_at=None, accepted_at=0, body=b"{}",
        digest=b"", fan_out=1,
    )  # fmt: skip
    row = delivery(held=held, parked=parked, due_at=due_at)
    made.accepted(
        [Incoming(event, [row])],
        NODE,
        AcceptResult(stale=False, taken=[Taken(EVENT, 1, fresh=True)], version=0),
    )
    assert made.findings == []
    return made


def result(
    *, attempt: int = 1, number: int | None = None, end: str | None = "delivered", next_number: int = 2
) -> Settled:
    entry = Attempt(
        delivery=ROW, number=number or attempt, kind="attempt", lane=0, started_at=1_000, outcome="delivered"
    )
    return Settled(
        delivery=delivery(attempt=attempt), entry=entry, end=end, number=next_number, due_at=2_000, lane=1
    )


NOTHING = Recorded(lost=[], changes=[])


def test_honest_work_is_no_finding():
    made = book()
    made.recorded([result(end=None)], NODE, NOTHING, [])
    made.claimed([delivery(attempt=2, due_at=2_000)], OTHER, due_by=2_500)
    made.recorded([result(attempt=2)], OTHER, NOTHING, [])
    assert made.findings == []
    assert made.rows[ROW].state == "delivered"


def test_a_second_lease_is_seen():
    made = book()
    made.claimed([delivery()], OTHER, due_by=2_000)
    assert "second node" in made.findings[0]


def test_claiming_too_early_is_seen():
    made = book(held=False)
    made.claimed([delivery()], OTHER, due_by=900)
    assert "100 ms before" in made.findings[0]


def test_claiming_what_is_parked_is_seen():
    made = book(held=False, parked="breaker")
    made.claimed([delivery()], OTHER, due_by=2_000)
    assert "while it is parked" in made.findings[0]


def test_a_result_of_somebody_who_does_not_hold_the_row_is_seen():
    made = book()
    made.recorded([result()], OTHER, NOTHING, [])
    assert "does not hold it" in made.findings[0]


def test_a_result_that_is_refused_without_reason_is_seen():
    made = book()
    made.recorded([result()], NODE, Recorded(lost=[ROW], changes=[]), [])
    assert "although its node holds it" in made.findings[0]


def test_writing_the_same_batch_again_is_honest():
    made = book()
    settled = result()
    made.recorded([settled], NODE, NOTHING, [])
    made.recorded([settled], NODE, NOTHING, [])
    assert made.findings == []


def test_an_attempt_under_another_number_is_seen():
    made = book()
    made.recorded([result(number=2)], NODE, NOTHING, [])
    assert "while 1 is in hand" in made.findings[0]


def test_going_back_in_the_schedule_is_seen():
    made = book()
    made.recorded([result(end=None, next_number=0)], NODE, NOTHING, [])
    assert "goes back" in made.findings[0]


def test_an_unknown_end_is_seen():
    made = book()
    made.recorded([result(end="vanished")], NODE, NOTHING, [])
    assert "no end state" in made.findings[0]


def test_a_second_end_is_seen():
    made = book(held=False)
    made.ended_idle([ROW], "cancelled", "request")
    made.ended_idle([ROW], "dead", None)
    assert "ended as cancelled and then as dead" in made.findings[0]


def test_a_write_by_an_evicted_node_is_seen():
    made = book()
    made.did_evict([NODE], 1, 0)
    assert made.findings == []
    made.released([delivery()], NODE)
    assert "which is evicted" in made.findings[0]


def test_an_eviction_that_frees_too_few_is_seen():
    made = book()
    made.did_evict([NODE], 0, 0)
    assert "freed 0" in made.findings[0]


def test_the_row_is_remembered_as_it_stood():
    made = book()
    assert isinstance(made._time, Time)
    made._time.now = 5.0
    made.recorded([result(end=None)], NODE, NOTHING, [])
    row = made.rows[ROW]
    then, later = row.when(4.9), row.when(5.1)
    assert then is not None and later is not None
    assert (then.holder, then.attempt) == (NODE, 1)
    assert (later.holder, later.attempt) == (None, 2)
    assert row.when(-1.0) is None


def test_a_request_that_was_written_and_given_up_in_one_instant_was_in_hand_when_it_was_written() -> None:
    row = Row(b"d", b"e", b"p", "t", 2, 0, None, None)
    row.past = [Moment(1.0, "sending", b"n", 1, 0, 10), Moment(2.0, "retrying", None, 2, 5_000, 21)]
    assert row.when(2.0) == row.after_step(21) == row.past[1]
    assert row.after_step(20) == row.past[0]
    assert row.after_step(9) is None


def test_going_round_in_circles_is_seen():
    made = book(held=False)
    for _ in range(CHURN):
        made.claimed([delivery()], NODE, due_by=2_000)
        made.released([delivery()], NODE)
    assert "circle" in made.findings[0]
