"""What may be said seldom: once in so many seconds for each key, and for a bounded number of keys."""

from __future__ import annotations

from collections.abc import Callable, Hashable

KEYS_MOST = 1_000


class Seldom:
    """`boot` counts seconds. Keys beyond `KEYS_MOST` have one turn between them."""

    def __init__(self, boot: Callable[[], float], every_s: float) -> None:
        self._boot = boot
        self._every_s = every_s
        self._said: dict[Hashable, float] = {}

    def may(self, key: Hashable) -> bool:
        """Whether it is time to say it again; then it counts as said."""
        now = self._boot()
        if key not in self._said and len(self._said) >= KEYS_MOST:
            self._said = {one: at for one, at in self._said.items() if now - at < self._every_s}
            if len(self._said) >= KEYS_MOST:
                key = None
        before = self._said.get(key)
        if before is not None and 0 <= now - before < self._every_s:
            return False
        self._said[key] = now
        return True
