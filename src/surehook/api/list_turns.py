"""Whose list is read next: a few at a time, keys in turns, and of one key the tenants that it asks for.

A ledger has one or two connections for lists, and a list takes from a millisecond to a tenth of a second. In the order in which
they come, nine hundred of one caller would have everybody else wait for seconds, also when he has hung up: an end of what he
sends is no sign that he does not wait for an answer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

from surehook.core.errors import Overloaded, TenantOverloaded

AT_ONCE = 2
# Lists of one key that may wait, of which one tenant may have three times as many as it leaves free, and the longest wait.
WAITING_MOST, BEGIN_S = 512, 15.0

Turn: TypeAlias = asyncio.Future[None]


class KeyLine:
    """Lists of one key that wait."""

    def __init__(self) -> None:
        self._tenants: dict[str, deque[Turn]] = {}  # whose turn is next in front
        self._count = 0

    def add(self, tenant: str, turn: Turn) -> None:
        """Raises TenantOverloaded."""
        if self._is_full_for(tenant):
            self._forget_given_up()
            if self._is_full_for(tenant):
                raise TenantOverloaded("too many lists of this key, or of this tenant, wait already")
        self._tenants.setdefault(tenant, deque()).append(turn)
        self._count += 1

    def _is_full_for(self, tenant: str) -> bool:
        return len(self._tenants.get(tenant, ())) >= 3 * (WAITING_MOST - self._count)

    def _forget_given_up(self) -> None:
        self._tenants = {
            tenant: deque(turn for turn in line if not turn.done()) for tenant, line in self._tenants.items()
        }
        self._count = sum(len(line) for line in self._tenants.values())

    def take(self) -> Turn | None:
        """Take out who is next, and put the tenant behind the others; None if nobody is left."""
        for tenant in list(self._tenants):
            line = self._tenants.pop(tenant)
            while line:
                turn = line.popleft()
                self._count -= 1
                if not turn.done():  # else it has given up
                    if line:
                        self._tenants[tenant] = line
                    return turn
        return None


class ListTurns:
    """One for a process."""

    def __init__(self) -> None:
        self._keys: dict[bytes, KeyLine] = {}  # whose turn is next in front
        self._free = AT_ONCE

    @asynccontextmanager
    async def turn(self, key: bytes, tenant: str = "") -> AsyncIterator[None]:
        """Wait for a turn, which lasts as long as the block. `tenant`: whose list it is; "" for that of several, and of nobody.
        Raises TenantOverloaded if too many wait, and Overloaded after a long wait."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(key, tenant)
        try:
            yield
        finally:
            self._next()

    async def _wait(self, key: bytes, tenant: str) -> None:
        turn: Turn = asyncio.get_running_loop().create_future()
        self._keys.setdefault(key, KeyLine()).add(tenant, turn)
        try:
            async with asyncio.timeout(BEGIN_S):
                await turn
        except TimeoutError:
            self._give_on(turn)
            detail = f"this list would have waited for its turn for more than {BEGIN_S:.0f} s"
            raise Overloaded(detail) from None
        except asyncio.CancelledError:
            self._give_on(turn)
            raise

    def _give_on(self, turn: Turn) -> None:
        """Who waited has gone: if its turn came in the same step, it is the next one's."""
        if not turn.cancelled():
            self._next()

    def _next(self) -> None:
        for key in list(self._keys):
            line = self._keys.pop(key)
            turn = line.take()
            if turn is not None:
                self._keys[key] = line
                turn.set_result(None)
                return
        self._free += 1
