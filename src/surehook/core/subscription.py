"""Which endpoints want an event.

A filter is an exact event type (`document.signed`), a prefix (`document.*`: everything below `document`, at any
depth, but not `document` itself), or `*` for everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Generic, TypeVar

from surehook.core import json_text, limits
from surehook.core.errors import Problem

_SEGMENTS = r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*"
_TYPE = re.compile(_SEGMENTS, re.ASCII)
_FILTER = re.compile(rf"\*|{_SEGMENTS}(?:\.\*)?", re.ASCII)
HINT = 'an event type such as "document.signed", a prefix such as "document.*", or "*"'

T = TypeVar("T")


def is_event_type(name: str) -> bool:
    """Letters, digits, `_` and `-`, in non-empty segments joined by full stops; at most 128 characters."""
    return len(name) <= limits.EVENT_TYPE_CHARS and _TYPE.fullmatch(name) is not None


def check_event_type(name: str, *, field: str = "type") -> str:
    """The name itself. Raises Problem `invalid_event_type`."""
    if not is_event_type(name):
        raise Problem(
            "invalid_event_type",
            f"{json_text.quoted(name)} is not an event type",
            field=field,
            hint=f"letters, digits, _ and -, in segments joined by full stops, at most {limits.EVENT_TYPE_CHARS}",
        )
    return name


def check_filters(filters: Sequence[object], *, field: str = "event_types") -> tuple[str, ...]:
    """The filters as a tuple, in order. Raises Problem `invalid_filter` with the field `event_types.N`."""
    # A text is a sequence too, of one-letter filters.
    if isinstance(filters, str) or not 0 < len(filters) <= limits.FILTERS:
        raise Problem(
            "invalid_filter", f"one to {limits.FILTERS} filters are given", field=field, hint='["*"] for all'
        )
    checked: list[str] = []
    for place, given in enumerate(filters):
        if not isinstance(given, str) or len(given) > limits.FILTER_CHARS or not _FILTER.fullmatch(given):
            raise Problem("invalid_filter", "not a filter", field=f"{field}.{place}", hint=HINT)
        if given in checked:
            raise Problem("invalid_filter", "given twice", field=f"{field}.{place}")
        checked.append(given)
    return tuple(checked)


def wants(filters: Sequence[str], event_type: str) -> bool:
    """Whether one of the filters matches."""
    for each in filters:
        if each == event_type or each == "*":
            return True
        if each.endswith(".*") and event_type.startswith(each[:-1]):
            return True
    return False


class Matcher(Generic[T]):
    """The fan-out of one tenant: event type to those who want it, in the order given. Remembers what it found.

    Built anew when the configuration changes. Event types need not be registered, so what a publisher makes
    up must not fill memory: at `limits.FILTER_MEMO` types the memory begins anew.
    """

    __slots__ = ("_entries", "_memo")

    def __init__(self, entries: Iterable[tuple[T, Sequence[str]]]) -> None:
        self._entries = tuple((who, tuple(filters)) for who, filters in entries)
        self._memo: dict[str, tuple[T, ...]] = {}

    def match(self, event_type: str) -> tuple[T, ...]:
        found = self._memo.get(event_type)
        if found is None:
            if len(self._memo) >= limits.FILTER_MEMO:
                self._memo.clear()
            found = tuple(who for who, filters in self._entries if wants(filters, event_type))
            self._memo[event_type] = found
        return found
