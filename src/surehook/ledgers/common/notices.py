"""Notices that a ledger writes in the transaction of what they tell."""

from __future__ import annotations

from collections.abc import Iterable

from surehook.core.model import Notice


def of_done(notices: Iterable[Notice], *, asked: Iterable[bytes], done: Iterable[bytes]) -> list[Notice]:
    """Leave out notices about deliveries that were asked for and skipped: they would not be true."""
    skipped = set(asked).difference(done)
    return [one for one in notices if one.delivery not in skipped]
