"""A plain single queue, as a model: what fail-fast, lanes and breakers are compared with.

One first-in-first-out line for first calls and retries alike, a number of slots, one timeout; a failure
goes back to the end of the line after its wait. It is how most senders begin.
"""

from __future__ import annotations

import heapq
from collections import deque

import msgspec

TIMEOUT_S = 10.0
WAITS_S = (120.0, 360.0, 1800.0, 3600.0)  # the first of Yousign's; the later ones lie beyond the horizon


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of the model."""

    delivered: int  # to endpoints that answer in time, within the horizon
    of: int
    done_s: float | None  # when the last of these was delivered, None if not within the horizon


def single_queue(
    *, events: int, publish_s: float, answers_s: tuple[float, ...], slots: int, horizon_s: float
) -> Outcome:
    """Publish `events` evenly over `publish_s` to one endpoint per entry of `answers_s`.

    An endpoint whose answer takes longer than the timeout never succeeds.
    """
    line: deque[tuple[float, int]] = deque()  # answer time, tries so far
    # What happens when: kind 0 publishes, kind 1 puts a retry in line, kind 2 frees a slot.
    # In order already, so a heap.
    agenda: list[tuple[float, int, int, float, int]] = [
        (publish_s * number / events, number, 0, answer, 0)
        for number in range(events)
        for answer in answers_s
    ]
    free, delivered, done = slots, 0, 0.0
    wanted = events * sum(answer <= TIMEOUT_S for answer in answers_s)
    while agenda and delivered < wanted:
        now, number, kind, answer, tries = heapq.heappop(agenda)
        if now > horizon_s:
            break
        if kind < 2:
            line.append((answer, tries))
        else:
            free += 1
            if answer <= TIMEOUT_S:
                delivered, done = delivered + 1, now
            elif tries < len(WAITS_S):
                heapq.heappush(agenda, (now + WAITS_S[tries], number, 1, answer, tries + 1))
        while free and line:
            free -= 1
            taken, made = line.popleft()
            heapq.heappush(agenda, (now + min(taken, TIMEOUT_S), number, 2, taken, made))
    return Outcome(delivered=delivered, of=wanted, done_s=round(done, 1) if delivered == wanted else None)
