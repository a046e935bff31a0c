"""Matches events with the endpoints that want them.

A filter is an exact event type (`document.signed`), a prefix (`document.*`: everything below `document`, at any
depth, but not `document` itself), or `*` for everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
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
    return len(name) <= limits.EVENT_TYPE_CHARS and _is_made_of_segments(name)


@lru_cache(maxsize=1024)  # publishers have few types and repeat them with every event
def _is_made_of_segments(name: str) -> bool:
    return _TYPE.fullmatch(name) is not None


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
    # A string is a sequence too, of one-letter filters.
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
    """True if one of the filters matches."""
    for each in filters:
        if each == event_type or each == "*":
            return True
        if each.endswith(".*") and event_type.startswith(each[:-1]):
            return True
    return False


class Matcher(Generic[T]):
    """The fan-out of one tenant: event type to the endpoints that want it, in the order given. Results are memoised.

    It is rebuilt when the configuration changes. A type is looked up by its name and its prefixes, so the number of
    endpoints does not matter. Event types need not be registered, and invented ones must not fill memory: types that match
    the same filters share one fan-out, and at `limits.FILTER_MEMO` types or `limits.FILTER_PLACES` the memo is emptied.
    """

    __slots__ = ("_found", "_held", "_memo", "_places", "_who")

    def __init__(self, entries: Iterable[tuple[T, Sequence[str]]]) -> None:
        self._who: list[T] = []
        self._places: dict[str, list[int]] = {}  # by type, by prefix with its full stop, and for everything
        for place, (who, filters) in enumerate(entries):
            self._who.append(who)
            for each in filters:
                self._places.setdefault(each[:-1] if each.endswith(".*") else each, []).append(place)
        self._memo: dict[str, tuple[T, ...]] = {}
        self._found: dict[tuple[str, ...], tuple[T, ...]] = {}  # by the filters that match
        self._held = 0  # places in these

    def match(self, event_type: str) -> tuple[T, ...]:
        found = self._memo.get(event_type)
        if found is None:
            if len(self._memo) >= limits.FILTER_MEMO or self._held >= limits.FILTER_PLACES:
                self._memo.clear()
                self._found.clear()
                self._held = 0
            found = self._memo[event_type] = self._find(event_type)
        return found

    def _find(self, event_type: str) -> tuple[T, ...]:
        prefixes = [event_type[:end] for end, each in enumerate(event_type, 1) if each == "."]
        names = tuple([name for name in ("*", *prefixes, event_type) if name in self._places])
        found = self._found.get(names)
        if found is None:
            wanted: set[int] = set().union(*[self._places[name] for name in names])
            found = self._found[names] = tuple([self._who[place] for place in sorted(wanted)])
            self._held += len(found)
        return found
