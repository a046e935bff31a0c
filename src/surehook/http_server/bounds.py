"""The bounds a server of HTTP runs within, and the budget of bytes that its connections share."""

from __future__ import annotations

from msgspec import Struct

from surehook.core import limits


class ServerBounds(Struct, frozen=True, kw_only=True):
    """Times are in ticks of the server, which are seconds except in tests."""

    connections: int = 4_096  # open at once
    backlog: int = 2_048  # connections the kernel may hold before they are accepted
    body_bytes: int = 64 * 1024 * 1024  # of all bodies from their first byte to their answer
    following: int = limits.FOLLOWING  # connections whose pieces wait for their turns
    unsent_bytes: int = limits.UNSENT_BYTES
    partial_heads_bytes: int = limits.PARTIAL_HEADS_BYTES
    head: int = limits.HEAD_S
    body: int = limits.BODY_S
    body_grace: int = limits.BODY_GRACE_S
    idle: int = limits.IDLE_S
    answer: int = limits.ANSWER_S
    linger: int = limits.LINGER_S


class ByteBudget:
    """A bound on the bytes of bodies held at once. Large bodies leave a part to single events, so that callers of batches
    cannot use up everybody's share."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.large_limit = int(limit * limits.LARGE_SHARE)
        self.used = 0

    def take(self, count: int, *, of: int) -> bool:
        """Take bytes for a body that has `of` in all; True if there was room."""
        limit = self.large_limit if of > limits.EVENT_BODY_BYTES else self.limit
        if self.used + count > limit:
            return False
        self.used += count
        return True

    def give(self, count: int) -> None:
        """Give bytes back."""
        self.used -= count
