"""One page of a list: walk keys newest first, keep what fits, stop at the page or at the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from surehook.ports.registry import Page

K = TypeVar("K", bound=bytes)
# Rows a page looks at before it comes back short, with a cursor: what a second's fraction can read.
LOOKS_MAX = 10_000


def page(keys: Iterable[bytes], shown: Callable[[bytes], Any], *, limit: int) -> Page:
    """The first `limit` values that `shown` gives for the keys (None: does not fit), and where it stopped."""
    data: list[Any] = []
    last: bytes | None = None
    for looks, key in enumerate(keys):
        if len(data) == limit or looks == LOOKS_MAX:
            return Page(data=data, next=last)
        last = key
        value = shown(key)
        if value is not None:
            data.append(value)
    return Page(data=data, next=None)


def named(values: Mapping[str, Any], *, limit: int, after: bytes | None) -> Page:
    """A page of values that people named: by `created_at`, and by name where that is equal."""
    by_age = {value.created_at.to_bytes(8, "big") + name.encode(): value for name, value in values.items()}
    keys = sorted((key for key in by_age if after is None or key < after), reverse=True)
    return page(keys, by_age.__getitem__, limit=limit)
