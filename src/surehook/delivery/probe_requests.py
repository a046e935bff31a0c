"""Asking the others who is the probe, beside the loop that takes back.

The store that is asked may be slow or frozen. Were the question part of the loop, every open breaker would hold up the
taking back of all endpoints for as long as one answer takes. So a few questions are under way at once, the rest stands
in line, and the loop finds what was granted when it comes round.
"""

from __future__ import annotations

from collections import deque

from surehook.core.breaker import Probe
from surehook.core.limits import PROBE_S
from surehook.delivery.cluster_health import ClusterHealth
from surehook.delivery.endpoint_state import EndpointState, UrlBreaker
from surehook.delivery.loops import Loops
from surehook.delivery.refill import Refill
from surehook.delivery.turns import Line
from surehook.ports.clock import Clock

# At once: with the exchange that may be under way, fewer than the connections that a store's client has.
ASKING_MOST = 2
PROBE_AGAIN_MS = 1_000  # another node is the probe: look again then

Granted = tuple[EndpointState, UrlBreaker, Probe]


class ProbeRequests:
    """Questions under way, and probes that are ours. `health` is None where there is nobody to ask."""

    def __init__(self, *, clock: Clock, loops: Loops, health: ClusterHealth | None, refill: Refill) -> None:
        self._clock = clock
        self._loops = loops
        self._health = health
        self._refill = refill
        self.granted: deque[Granted] = deque()
        self.waiting = Line()  # endpoints whose question has not been asked
        self._asking = 0

    @property
    def is_free(self) -> bool:
        """Tell whether another question may be asked now."""
        return self._health is None or self._asking < ASKING_MOST

    def ask(self, route: EndpointState) -> None:
        """The breaker of this endpoint holds it. If its probe is due and may be ours, `granted` has it later."""
        if not self.is_free:
            self.waiting.add(route)
            return
        breaker = route.breaker
        probe = breaker.take_probe(self._clock.now())
        if probe is None:
            return
        if self._health is None:
            self.granted.append((route, breaker, probe))
            return
        self._asking += 1
        health = self._health
        self._loops.do("probe", lambda: self._ask(health, (route, breaker, probe)))

    async def _ask(self, health: ClusterHealth, grant: Granted) -> None:
        _, breaker, probe = grant
        is_ours = False
        try:
            is_ours = await health.may_probe(breaker, PROBE_S)
        finally:
            self._asking -= 1
            if is_ours:
                self.granted.append(grant)
            else:
                breaker.drop_probe(probe, next_at=self._clock.now() + PROBE_AGAIN_MS)
            self._refill.wake.set()
