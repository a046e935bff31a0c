"""A tenant that is owed more than memory holds, and another whose receiver answers at once.

Large bodies near the bound of memory, for one slow endpoint or for many, and nothing else goes wrong: so whatever the
second tenant's deliveries wait for is the first one's, and more than a few turns of it is a finding.
"""

from __future__ import annotations

import random
from typing import Any

from msgspec import Struct

OWED, NEAR = "owed", "near"
# From commit to arrival: a poll, a hint that was lost, and two calls of a slow receiver for a slot.
LATE_S = 6.0


class Debt(Struct, frozen=True):
    """Parameters of such a world."""

    endpoints: int  # of the tenant that is owed
    publishes: list[tuple[float, str, str, int]]
    answer_s: tuple[float, float]  # of its receivers
    engine: dict[str, Any]


def draw(chance: random.Random, storm_s: float) -> Debt | None:
    """One world of six is one."""
    if chance.random() >= 1 / 6:
        return None
    endpoints, events = chance.choice(((1, 40), (1, 80), (40, 4), (40, 5)))
    begin = chance.uniform(0, storm_s * 0.3)
    publishes = [(begin + chance.random() * 0.05, OWED, "document.signed", 1) for _ in range(events)]
    publishes += [(begin + 0.1 + chance.random() * 8, NEAR, "document.signed", 1) for _ in range(8)]
    return Debt(
        endpoints=endpoints,
        publishes=sorted(publishes),
        answer_s=(0.8, 1.2),
        engine={
            "slots_first": chance.choice((2, 4)),
            "slots_retry": 4,
            "endpoint_slots": chance.choice((2, 8)),
            "memory_bytes": chance.choice((32, 64)) << 10,
            "memory_deliveries": chance.choice((400, 5_000)),
            "endpoint_share": 10,
            "claim_rows": chance.choice((10, 100)),
        },
    )


def padding(tenant: str, number: int) -> str:
    """Filler that makes the bodies of this tenant's events large."""
    return "x" * (4_000 + 1_000 * (number % 9)) if tenant == OWED else ""


def be_calm(options: Any) -> None:
    """Nothing goes wrong in this world, and nobody else is in it."""
    options.faults, options.orders, options.blows, options.customers = (), [], [], []
    options.late_s, options.stall_share, options.slow = (0.0, 0.001), 0.0, ()
    options.unavailable_share = options.unknown_share = options.reads_away_share = 0.0
    options.probe_freezes, options.dial_freeze_s, options.configuring = 0, None, ()
    options.dns_fail_share, options.clock_offset_ms, options.clock_drift_ppm = 0.0, 0, 0.0
