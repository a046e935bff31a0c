"""Walking through parked groups to end what should not wait there any more: fair, bounded, off the hot path.

Each step looks through a few groups at once and ends a bounded number of rows in one transaction, taken in equal
parts; groups with more go to the end of the line. So one endpoint's backlog keeps no other's waiting, whatever its
size, and between two steps everybody else has the ledger.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from surehook.core.model import Delivery
from surehook.ports.clock import Clock
from surehook.ports.ledger import AgedGroup, Ledger

FRESH_STEPS = 50  # after so many others are asked for: a long walk keeps nobody from beginning
STEP_ROWS = 200  # ended in one transaction: some ten milliseconds of SQLite's writer
STEP_GROUPS = 100  # looked through in one step, with two rows each at least
STEP_REST_S, STEP_REST_SHARE = 0.01, 1.0  # between two steps: at least so long, and as long as the step took


async def walk(
    ledger: Ledger,
    clock: Clock,
    groups: Sequence[AgedGroup],
    end: Callable[[Sequence[Delivery]], Awaitable[object]],
    fresh: Callable[[], Awaitable[Sequence[AgedGroup]]] | None = None,
) -> None:
    """Give every row past its age to `end`. `fresh` tells what else there is to look through by now."""
    line, steps = deque(groups), 0
    while line:
        began = clock.boot()
        taken = [line.popleft() for _ in range(min(STEP_GROUPS, len(line)))]
        page = await ledger.parked_aged(taken, limit=STEP_ROWS)
        line.extend(page.goes_on)
        if page.rows:
            await end(page.rows)
        await clock.sleep(max(STEP_REST_S, (clock.boot() - began) * STEP_REST_SHARE))
        steps += 1
        if fresh is not None and steps % FRESH_STEPS == 0:
            line.extend(await fresh())
