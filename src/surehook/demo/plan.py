"""The plan of the demonstration: the workflow, the receivers, and policies short enough to watch.

The policies are objects that start from a profile; the profiles themselves are not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from surehook.demo.receiver import Behaviour
from surehook.demo.road import Road

TENANT = "demo"
STEPS = ("document.sent", "document.viewed", "document.signed", "document.completed")
DOCUMENTS = 200
PUBLISH_S = 10.0  # all steps of the usual number of documents within this time
KILL_SERVER_AT = 0.4  # of the events accepted
KILL_APPLICATION_AT = 0.7
PATIENT_S = 2.5  # a first timeout over 2 s is tried in the retry lane from the start
END_S = 52.0  # after the beginning, however slow the machine: what is open then is counted as open
SETTLE_S = 32.0  # after the last event, at most; set-up, publishing and this stay under 60 s


class DemoReceiver(Struct, frozen=True):
    """One receiver: what it gets, how it behaves (None: nothing listens there), how it is treated.

    A `Road` leads to the application, which is a process of its own.
    """

    name: str
    about: str
    event_types: tuple[str, ...]
    behaviour: Behaviour | Road | None
    policy: dict[str, object]
    ends: bool  # its deliveries are sure to end while we watch


def _policy(**changes: object) -> dict[str, object]:
    """`standard` with short waits: a second where it has minutes."""
    start = {
        "profile": "standard",
        "timeouts": {"first": 1.0, "retry": 5.0, "connect": 1.0},
        "schedule": {"fixed": [0.5, 1, 2, 3, 3, 3]},
        "jitter": {"ratio": 0.2},
    }
    return start | changes


APPLICATION = "inbox"
SOURCE = "surehook"  # the application knows the server by this name
PARTS: tuple[DemoReceiver, ...] = (
    DemoReceiver(
        name=APPLICATION,
        about="an application, by a road that loses, repeats, reorders",
        event_types=("document.*",),
        behaviour=Road(loses=0.02, forgets=0.05, repeats=0.05, holds=0.15, hold_s=(0.05, 0.4)),
        # Opens while the application is dead, and looks every second whether it is back.
        policy=_policy(
            schedule={"fixed": [0.3, 0.5, 0.5, 1, 1, 1, 2, 2, 2, 2]},
            breaker={"window": 10, "failure_ratio": 0.6, "calls": 20, "probe_after": 1},
        ),
        ends=True,
    ),
    DemoReceiver(
        name="healthy",
        about="answers at once",
        event_types=("document.*",),
        behaviour=Behaviour(),
        policy=_policy(),
        ends=True,
    ),
    DemoReceiver(
        name="slow",
        about="answers after 2 s: for the patient lane",
        event_types=("document.completed",),
        behaviour=Behaviour(delay_s=2.0),
        policy=_policy(timeouts={"first": PATIENT_S, "retry": 5.0, "connect": 1.0}),
        ends=True,
    ),
    DemoReceiver(
        name="flaky",
        about="fails 3 of 10: a 500, or hangs up",
        event_types=("document.*",),
        behaviour=Behaviour(flaky=0.3),
        policy=_policy(breaker=None, schedule={"fixed": [0.3, 0.5, 0.5, 1, 1, 1, 2, 2, 2, 2]}),
        ends=True,
    ),
    DemoReceiver(
        name="hanging",
        about="never answers; too old after 8 s",
        event_types=("document.signed",),
        behaviour=Behaviour(hangs=True),
        policy=_policy(
            timeouts={"first": PATIENT_S, "retry": PATIENT_S, "connect": 0.5},
            breaker={"window": 10, "failure_ratio": 0.4, "calls": 20, "probe_after": 3},
            max_age=8,
        ),
        ends=True,
    ),
    DemoReceiver(
        name="refusing",
        about="nothing listens there; kept until somebody does",
        event_types=("document.viewed",),
        behaviour=None,
        policy=_policy(
            schedule={"fixed": [2, 5, 10, 60, 600]},
            max_age=None,
            breaker={"window": 10, "failure_ratio": 0.4, "calls": 20, "probe_after": 5},
        ),
        ends=False,
    ),
)


class DemoEvent(Struct, frozen=True):
    """One event of the workflow. `key` makes a repeat the same event."""

    type: str
    subject: str
    sequence: int
    key: str
    data: dict[str, Any]


def workflow(documents: int) -> Iterator[DemoEvent]:
    """Every document goes through all four steps, a while apart, so that all steps are under way at once."""
    apart = max(1, documents // 5)
    # Completed as soon as signed, as signature platforms do: on the way those two may overtake each other.
    begins = (0, apart, 2 * apart, 2 * apart + 1)
    for turn in range(documents + begins[-1]):
        for place, type in enumerate(STEPS):
            number = turn - begins[place] + 1
            if 1 <= number <= documents:
                document = f"doc_{number:04d}"
                data = {"document_id": document, "signer": f"signer{number % 7}@example.com"}
                yield DemoEvent(type, document, place + 1, f"{document}:{type}", data)
