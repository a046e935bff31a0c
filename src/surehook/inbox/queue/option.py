"""The option `Inbox(…, queue=…)`: the queue, and how much may wait in it."""

from __future__ import annotations

import re

from msgspec import Struct

from surehook.core.errors import SettingsError

MOST_BYTES = 1024 * 1024 * 1024  # ten minutes of 1,000 requests a second of 1.7 KB
LEAST_BYTES = 1024 * 1024  # less than two messages of the largest kind
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


class Queue(Struct, frozen=True):
    """A queue in front of the inbox's table.

    url         amqp://… or amqps://… (of several nodes, separated by commas), redis://… or rediss://…
    name        of the queue in the broker; inboxes that share a broker need one each
    most_bytes  that may wait in it; beyond them the table takes what comes
    """

    url: str
    name: str = "surehook.inbox"
    most_bytes: int = MOST_BYTES

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or _NAME.fullmatch(self.name) is None:
            raise SettingsError(
                "queue", "the name of a queue has letters, digits, `.`, `_` and `-`, at most 100"
            )
        if not isinstance(self.most_bytes, int) or self.most_bytes < LEAST_BYTES:
            raise SettingsError("queue", f"most_bytes is a whole number of at least {LEAST_BYTES}")

    def __repr__(self) -> str:  # the URL may hold a password
        return f"Queue(…, name={self.name!r}, most_bytes={self.most_bytes})"
