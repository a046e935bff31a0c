"""From what became of a request to what its sender is told."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from surehook.core.errors import Overloaded
from surehook.core.sources.provider import Reply
from surehook.core.verification import VerifyError
from surehook.inbox.answers import problem, refused
from surehook.inbox.receive import Taken
from surehook.ports.inbox import Stored, StoreError

log = logging.getLogger("surehook.inbox")


def answered(taken: Taken, ends: Sequence[Stored]) -> Reply:
    """What to answer after the commit."""
    try:
        return taken.reply(ends)
    except VerifyError as error:  # Adobe's client id, which was there a moment ago
        return refused(error)


def unstored(error: Exception) -> tuple[Reply, str]:
    """What to answer when nothing was committed, or nobody knows; and its code."""
    if isinstance(error, Overloaded):
        return problem("overloaded"), "overloaded"
    if isinstance(error, StoreError):
        log.warning("an event could not be stored: %s", error)
    else:
        log.error("an event could not be stored", exc_info=error)
    return problem("storage_unavailable"), "storage_unavailable"
