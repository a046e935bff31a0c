"""The board of a large installation costs what has something to show, not what there is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from surehook.core.profiles import PROFILES
from surehook.delivery.breaker_board import breaker_views
from surehook.delivery.endpoint_state import UrlBreaker

NOW = 1_767_225_600_000


class Watched(UrlBreaker):
    """Counts how often its window is looked through."""

    looks = 0

    def counts(self, now: int) -> tuple[int, int]:
        Watched.looks += 1
        return super().counts(now)


def test_breakers_that_were_never_called_are_not_looked_through() -> None:
    policy = PROFILES["standard"].breaker
    breakers = [Watched("acme", f"https://{number}.example.com/", policy) for number in range(1_000)]
    for breaker in breakers:
        breaker.routes = []
    directory: Any = SimpleNamespace(breakers=breakers)
    assert breaker_views(directory, NOW) == []
    assert Watched.looks == 0
    breakers[7].after(failed=True, now=NOW, probe=None)
    (view,) = breaker_views(directory, NOW)
    assert (view.url, view.calls, view.failures) == (breakers[7].key, 1, 1)
    assert Watched.looks == 1
