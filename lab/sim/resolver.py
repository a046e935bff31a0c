"""Names to addresses, from a table, with answers that fail or take their time."""

from __future__ import annotations

import asyncio
import random

from lab.sim.loop import SimLoop
from surehook.ports.resolver import Resolved


class Names:
    """The world's DNS. `failing` maps a host to the failure it has now; `fail_share` strikes any query."""

    def __init__(self) -> None:
        self.addresses: dict[str, tuple[str, ...]] = {}
        self.failing: dict[str, str] = {}
        self.fail_share = 0.0


class SimResolver:
    """`ports.resolver.Resolver` of one process. Answers stay fresh for `ttl_s` seconds."""

    def __init__(self, names: Names, loop: SimLoop, chance: random.Random, *, ttl_s: float = 60.0) -> None:
        self._names = names
        self._loop = loop
        self._chance = chance
        self._ttl_s = ttl_s
        self._memory: dict[str, tuple[float, Resolved]] = {}

    def cached(self, host: str) -> Resolved | None:
        known = self._memory.get(host)
        return known[1] if known is not None and known[0] > self._loop.time() else None

    async def resolve(self, host: str) -> Resolved:
        await asyncio.sleep(0.001 + 0.02 * self._chance.random())
        failure = self._names.failing.get(host)
        if failure is None and self._chance.random() < self._names.fail_share:
            failure = self._chance.choice(("dns_failure", "dns_timeout"))
        if failure == "dns_timeout":
            await asyncio.sleep(2.0)
        addresses = self._names.addresses.get(host, ())
        if failure is None and not addresses:
            failure = "dns_nxdomain"
        if failure is not None:
            return Resolved(failure=failure)
        answer = Resolved(addresses=addresses)
        self._memory[host] = (self._loop.time() + self._ttl_s, answer)
        return answer

    async def close(self) -> None:
        self._memory.clear()
