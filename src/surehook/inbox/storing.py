"""What a sender is told when nothing was stored."""

from __future__ import annotations

import logging

from surehook.core.errors import Overloaded
from surehook.core.sources.provider import Reply
from surehook.inbox.answers import problem
from surehook.ports.inbox import StoreError

log = logging.getLogger("surehook.inbox")


def unstored(error: Exception) -> tuple[Reply, str]:
    """What to answer when nothing was committed, or nobody knows; and its code."""
    if isinstance(error, Overloaded):
        return problem("overloaded"), "overloaded"
    if isinstance(error, StoreError):
        log.warning("an event could not be stored: %s", error)
    else:
        log.error("an event could not be stored", exc_info=error)
    return problem("storage_unavailable"), "storage_unavailable"
