"""The count at the end: the API's word and the receivers' memory have to agree."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from surehook.api import examples
from surehook.core.answers import DeliveryOut
from surehook.demo.kept import NOTHING, DatabaseContent
from surehook.demo.memory import ReceiverMemory, Sight
from surehook.demo.run import conclude
from surehook.demo.tally import Totals, by_endpoint, tally

LINE = re.compile(
    r"demo: accepted=\d+ delivered=\d+ open=\d+ dead=\d+ lost=\d+ duplicated=\d+"
    r" applied=\d+ applied_twice=\d+ seconds=\d+\.\d"
)
APPLICATION = "ep_app"


def delivery(id: str, state: str, event: str = "e1", endpoint: str = "ep", **others: Any) -> DeliveryOut:
    """A delivery as the API shows it."""
    given = {"id": id, "event": event, "state": state, "endpoint": endpoint, **others}
    return msgspec.convert(examples.ANSWERS["Delivery"] | given, DeliveryOut)


def memory(**sights: Sight) -> ReceiverMemory:
    return ReceiverMemory(seen=dict(sights))


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
    totals = tally({"e1": 1}, [delivery(*d) for d in deliveries], [memory(**sights)], NOTHING, APPLICATION)
    assert (
        totals.accepted, totals.delivered, totals.open, totals.dead, totals.lost, totals.duplicated,
    ) == expected, case  # fmt: skip
    assert totals.accepted == totals.delivered + totals.open + totals.dead + totals.lost


def test_deliveries_that_were_never_promised_hide_no_loss() -> None:
    totals = tally(
        {"e1": 2},
        [delivery("d1", "delivered"), delivery("d9", "delivered", "e9")],
        [memory(d1=SEEN, d9=SEEN)],
        NOTHING,
        APPLICATION,
    )
    assert (totals.accepted, totals.delivered, totals.lost) == (2, 1, 1)


def test_a_delivery_listed_twice_counts_once() -> None:
    totals = tally({"e1": 2}, [delivery("d1", "delivered")] * 2, [memory(d1=SEEN)], NOTHING, APPLICATION)
    assert totals.lost == 1


@pytest.mark.parametrize(
    ("case", "state", "kept", "expected"),
    [
        ("stored and applied", "delivered", DatabaseContent({"e1": "finalized"}, {"e1": 1}), (1, 0, 1, 0, 0)),
        ("answered 2xx, and not stored", "delivered", NOTHING, (0, 1, 0, 0, 0)),
        ("finished with, and without effect", "delivered", DatabaseContent({"e1": "finalized"}, {}), (0, 1, 0, 0, 0)),
        ("taken for stale", "delivered", DatabaseContent({"e1": "ignored"}, {}), (0, 1, 0, 0, 0)),
        ("given up by the inbox", "delivered", DatabaseContent({"e1": "dead"}, {}), (0, 1, 0, 0, 0)),
        ("still to do, and nothing it waits for", "delivered", DatabaseContent({"e1": "accepted"}, {}), (1, 0, 0, 0, 1)),
        ("applied, and its answer was lost", "retrying", DatabaseContent({"e1": "finalized"}, {"e1": 1}), (0, 0, 1, 0, 0)),
        ("applied twice", "delivered", DatabaseContent({"e1": "finalized"}, {"e1": 2}), (1, 0, 1, 1, 0)),
    ],
)  # fmt: skip
def test_what_the_application_was_given_has_to_be_in_its_database(
    case: str, state: str, kept: DatabaseContent, expected: tuple[int, ...]
) -> None:
    one = delivery("d1", state, endpoint=APPLICATION)
    totals = tally({"e1": 1}, [one], [memory(d1=SEEN)], kept, APPLICATION)
    assert (
        totals.delivered, totals.lost, totals.applied, totals.applied_twice, totals.stuck,
    ) == expected, case  # fmt: skip
    assert totals.accepted == totals.delivered + totals.open + totals.dead + totals.lost


def test_an_event_may_wait_in_the_inbox_for_one_that_is_still_to_come() -> None:
    deliveries = [
        delivery("d1", "retrying", "e1", APPLICATION),
        delivery("d2", "delivered", "e2", APPLICATION),
    ]
    kept = DatabaseContent({"e2": "held"}, {})
    totals = tally({"e1": 1, "e2": 1}, deliveries, [memory(d2=SEEN)], kept, APPLICATION)
    assert (totals.delivered, totals.lost, totals.stuck) == (1, 0, 0)


def test_an_effect_of_an_event_that_nobody_published_is_none_of_the_applied() -> None:
    totals = tally({"e1": 0}, [], [], DatabaseContent({}, {"e9": 2}), APPLICATION)
    assert (totals.applied, totals.applied_twice) == (0, 1)


def totals_of(**changes: int) -> Totals:
    return Totals(
        **{
            "accepted": 6, "delivered": 3, "open": 2, "dead": 1, "lost": 0, "duplicated": 4, "applied": 2,
            "applied_twice": 0, "stuck": 0,
        }
        | changes
    )  # fmt: skip


def test_the_last_line_has_exactly_the_promised_form() -> None:
    line = totals_of().line(12.345)
    assert line == (
        "demo: accepted=6 delivered=3 open=2 dead=1 lost=0 duplicated=4 applied=2 applied_twice=0 seconds=12.3"
    )
    assert LINE.fullmatch(line)


def test_counts_are_kept_by_receiver_and_state() -> None:
    counts = by_endpoint(
        {"ep": "healthy", "ep2": "slow"},
        [delivery("a", "delivered"), delivery("b", "delivered"), delivery("c", "parked", endpoint="ep2")],
    )
    assert counts == {"healthy": {"delivered": 2}, "slow": {"parked": 1}}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, 0),
        ({"lost": 1}, 1),
        ({"lost": -1}, 1),
        ({"applied_twice": 1}, 1),
        ({"unordered": 1}, 1),
        ({"stuck": 1}, 1),
    ],
)
def test_one_delivery_lost_or_applied_twice_fails_the_demonstration(
    capsys: pytest.CaptureFixture[str], changes: dict[str, int], code: int
) -> None:
    assert conclude(totals_of(**changes), 1.0) == code
    assert LINE.fullmatch(capsys.readouterr().out.replace("=-", "=").removesuffix("\n"))
