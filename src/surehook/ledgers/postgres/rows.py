"""Rows to core values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from surehook.core.model import Delivery


def deliveries_of(rows: Iterable[Iterable[Any]]) -> list[Delivery]:
    """Rows whose columns stand in the order of a delivery's fields."""
    return [Delivery(*row) for row in rows]


def sharing_bodies(rows: Iterable[Iterable[Any]]) -> list[Delivery]:
    """The same, where an event's body came with its first row alone."""
    found = deliveries_of(rows)
    bodies: dict[bytes, bytes] = {}
    for delivery in found:
        delivery.body = bodies.setdefault(delivery.event, delivery.body)
    return found
