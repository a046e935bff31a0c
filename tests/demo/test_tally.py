"""The count at the end: the API's word and the receivers' memory have to agree."""

from __future__ import annotations

import re

import pytest

from surehook.demo.memory import Memory, Sight
from surehook.demo.run import conclude
from surehook.demo.tally import Totals, by_endpoint, tally

LINE = re.compile(
    r"demo: accepted=\d+ delivered=\d+ open=\d+ dead=\d+ lost=\d+ duplicated=\d+ seconds=\d+\.\d"
)


def delivery(id: str, state: str, event: str = "e1", endpoint: str = "ep") -> dict[str, str]:
    return {"id": id, "event": event, "state": state, "endpoint": endpoint}


def memory(**sights: Sight) -> Memory:
    return Memory(seen=dict(sights))


SEEN = Sight(requests=1, answered=True)


@pytest.mark.parametrize(
    ("case", "deliveries", "sights", "expected"),
    [
        ("delivered and seen", [("d1", "delivered")], {"d1": SEEN}, (1, 1, 0, 0, 0, 0)),
        ("the API says delivered, nobody saw it", [("d1", "delivered")], {}, (1, 0, 0, 0, 1, 0)),
        ("the API does not know it", [], {"d1": SEEN}, (1, 0, 0, 0, 1, 0)),
        ("waiting", [("d1", "retrying")], {}, (1, 0, 1, 0, 0, 0)),
        ("kept until the breaker closes", [("d1", "parked")], {}, (1, 0, 1, 0, 0, 0)),
        ("a dead letter", [("d1", "dead")], {"d1": Sight(requests=3)}, (1, 0, 0, 1, 0, 0)),
        ("dropped on the quiet", [("d1", "dropped")], {}, (1, 0, 0, 0, 1, 0)),
        ("cancelled by nobody", [("d1", "cancelled")], {}, (1, 0, 0, 0, 1, 0)),
        ("seen again after its 2xx", [("d1", "delivered")], {"d1": Sight(3, True, 2)}, (1, 1, 0, 0, 0, 2)),
    ],
)
def test_each_delivery_counts_as_what_it_is(
    case: str, deliveries: list[tuple[str, str]], sights: dict[str, Sight], expected: tuple[int, ...]
) -> None:
    totals = tally({"e1": 1}, [delivery(*d) for d in deliveries], [memory(**sights)])
    assert (
        totals.accepted, totals.delivered, totals.open, totals.dead, totals.lost, totals.duplicated,
    ) == expected, case  # fmt: skip
    assert totals.accepted == totals.delivered + totals.open + totals.dead + totals.lost


def test_deliveries_that_were_never_promised_hide_no_loss() -> None:
    totals = tally(
        {"e1": 2},
        [delivery("d1", "delivered"), delivery("d9", "delivered", "e9")],
        [memory(d1=SEEN, d9=SEEN)],
    )
    assert (totals.accepted, totals.delivered, totals.lost) == (2, 1, 1)


def test_a_delivery_listed_twice_counts_once() -> None:
    totals = tally({"e1": 2}, [delivery("d1", "delivered")] * 2, [memory(d1=SEEN)])
    assert totals.lost == 1


def test_the_last_line_has_exactly_the_promised_form() -> None:
    line = Totals(accepted=6, delivered=3, open=2, dead=1, lost=0, duplicated=4).line(12.345)
    assert line == "demo: accepted=6 delivered=3 open=2 dead=1 lost=0 duplicated=4 seconds=12.3"
    assert LINE.fullmatch(line)


def test_counts_are_kept_by_receiver_and_state() -> None:
    counts = by_endpoint(
        {"ep": "healthy", "ep2": "slow"},
        [delivery("a", "delivered"), delivery("b", "delivered"), delivery("c", "parked", endpoint="ep2")],
    )
    assert counts == {"healthy": {"delivered": 2}, "slow": {"parked": 1}}


@pytest.mark.parametrize(("lost", "code"), [(0, 0), (1, 1), (-1, 1)])
def test_one_lost_delivery_fails_the_demonstration(
    capsys: pytest.CaptureFixture[str], lost: int, code: int
) -> None:
    totals = Totals(accepted=5, delivered=5 - lost, open=0, dead=0, lost=lost, duplicated=0)
    assert conclude(totals, 1.0) == code
    assert LINE.fullmatch(capsys.readouterr().out.replace("=-", "=").removesuffix("\n"))
