"""A lane's slots, divided among tenants.

Turns are no help while no slot is free, and slow requests that began together end together. So where there are several
tenants, each that uses the lane may have so many times as many slots as are free (`PART`), divided by how many use it: an
eighth of the lane stays free however many fill it at one instant, and a slot that becomes free goes to who has few.

Who comes later finds less, since nothing is taken back from requests under way: tenants that come one after another
would leave the last of them nothing. So a lane is half as large again for those that have few requests under way
(`FEW` at first, fewer as that is used): a request that only waits for its answer costs a connection and some memory.
Whoever has nothing under way begins at once, until a hundred tenants and more hold as many as they can.
"""

from __future__ import annotations

from surehook.delivery.turns import Turns

PART = 7  # a tenant that is alone in using a lane has seven eighths
FEW = 8  # requests under way, of a tenant that has slots beyond those of the lane
PASSED = 8  # tenants in the line of suspects, at a time


def beyond(slots: int) -> int:
    """Number of requests that a lane of so many slots may have beyond them."""
    return slots // 2


class LaneState:
    """One lane's slots and the turns of endpoints that could use one."""

    __slots__ = (
        "_beyond",
        "busy",
        "most",
        "owed_suspects_most",
        "ring",
        "slots",
        "suspects",
        "suspects_busy",
        "suspects_most",
        "tenants_busy",
    )

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.busy = 0
        self.suspects_busy = 0
        self.tenants_busy: dict[str, int] = {}
        self.ring = Turns()
        self.suspects = Turns()  # endpoints set aside until another suspect's slot is free
        self._beyond = beyond(slots)
        self.most = slots + self._beyond  # requests under way, with which nobody may begin another
        # Of suspects: half of the lane, and half of what is beyond it for tenants that are owed. However many tenants' receivers
        # hang, the other halves are for those who answer.
        self.suspects_most = max(1, slots >> 1)
        self.owed_suspects_most = self.suspects_most + (self._beyond >> 1)

    def take_slot(self, tenant: str) -> None:
        """A request of the tenant's begins."""
        self.busy += 1
        self.tenants_busy[tenant] = self.tenants_busy.get(tenant, 0) + 1

    def give_slot(self, tenant: str) -> None:
        """It has ended, or was none: who had no turn for want of free slots has one again."""
        self.busy -= 1
        left = self.tenants_busy[tenant] - 1
        if left:
            self.tenants_busy[tenant] = left
        else:
            del self.tenants_busy[tenant]
        if self.ring.aside:
            self.ring.bring_back()

    def owes_suspect(self) -> bool:
        """Tell whether the first in the line of suspects may begin although their half of the lane is taken: its tenant is owed
        it. A few tenants that are not are passed over."""
        if self.suspects_busy >= self.owed_suspects_most:
            return False
        tenants = self.suspects.tenants
        for _ in range(min(len(tenants), PASSED)):
            if self.is_owed(tenants[0]):
                return True
            tenants.rotate(-1)
        return False

    def has_part(self, tenant: str) -> bool:
        """Tell whether the tenant may use one more slot, where there are others."""
        used = self.tenants_busy.get(tenant, 0)
        users = len(self.tenants_busy) + (not used)
        return used * users < (self.slots - self.busy) * PART or self.is_owed(tenant)

    def is_owed(self, tenant: str) -> bool:
        """Tell whether the tenant has so few that it may use one more although the lane is full."""
        left = self.most - max(self.busy, self.slots)
        # By the square: the less is left, the more of it is for those who have nothing.
        return self.tenants_busy.get(tenant, 0) * self._beyond**2 < left * max(0, left) * FEW
