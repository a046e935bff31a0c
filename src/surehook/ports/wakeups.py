"""Hints between processes that there is something to look for: never needed, only sooner.

A hint says where to look, never what is there. It may be lost, come twice, come late or come for nothing.
Nothing may rely on one: polling (claims every second, the configuration with every beat, parked
groups every ten seconds) finds the same a little later. So hints are published after the commit they speak
of, outside every transaction, and an adapter may fold and drop them as it likes.

    work first, work retry    the ledger has unheld work of this lane that is due, or will be within a poll
    configuration             its version went up
    outbox                    an application has written rows of an outbox (a trigger says so)
    parked ENDPOINT           parked work of this endpoint may be taken back (its id in hex)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from surehook.core.model import LANES

WORK = tuple(f"work {name}" for name in LANES)  # by lane
CONFIGURATION = "configuration"
OUTBOX = "outbox"
_PARKED = "parked "

Heard = Callable[[str], None]


def parked(endpoint: bytes) -> str:
    """The kind of hint for one endpoint's parked work."""
    return _PARKED + endpoint.hex()


def parked_endpoint(kind: str) -> bytes | None:
    """The endpoint of a hint about parked work; None for other kinds."""
    if not kind.startswith(_PARKED):
        return None
    try:
        return bytes.fromhex(kind.removeprefix(_PARKED))
    except ValueError:
        return None


class Wakeups(Protocol):
    async def start(self, heard: Heard) -> None:
        """Listen: `heard` is called with each kind that another process published, and with every kind that may
        have been missed when a lost connection is back. Returns at once; a listener that cannot be reached
        now is tried again for as long as it takes."""
        ...

    def publish(self, kind: str) -> None:
        """Tell the other processes soon. Never blocks, never raises; a kind that is waiting already is told once."""
        ...

    async def close(self) -> None:
        """Tell what is still waiting, and stop listening."""
        ...


class NoWakeups:
    """Wakeups of one process on a ledger of its own: there is nobody to tell."""

    async def start(self, heard: Heard) -> None:
        """Do nothing: no other process publishes."""

    def publish(self, kind: str) -> None:
        """Do nothing: no other process listens."""

    async def close(self) -> None:
        """Do nothing: nothing was opened."""
