"""The breakers of everybody's URLs and the endpoints that share each: a breaker lives while an endpoint has its URL.

The configuration is taken over a page at a time (delivery/loading.py), and within one an endpoint may leave a URL that
another moves to. So what follows for breakers is judged when a page is in (`settle`): one that no endpoint has is gone;
any other has the numbers of its oldest endpoint whose policy has a breaker. Where no policy has one, nobody heeds it,
and an open one is closed, unless it opened for the signing key.
"""

from __future__ import annotations

from collections.abc import Iterator

from surehook.core.breaker import Breaker
from surehook.delivery.endpoint_state import EndpointState, Place, UrlBreaker, age
from surehook.ports.health import View

# The longest that another node may be ahead of us in knowing an endpoint: several looks for the configuration (10 s).
# What was heard of a URL for longer is about one that has no endpoint any more.
AHEAD_MS = 60_000


class Breakers:
    """All of them, by place."""

    def __init__(self, *, together: bool = False) -> None:
        """`together`: nodes decide together, and each breaker says when it has something to report."""
        self._together = together
        self.touched: list[Breaker] = []  # those with something to report then
        self._by_place: dict[Place, UrlBreaker] = {}
        self._unclosed: dict[Place, None] = {}
        self._unsettled: dict[UrlBreaker, None] = {}
        self._ahead: dict[Place, tuple[View, int]] = {}  # open ones, and when we heard of them

    def __getitem__(self, place: Place) -> UrlBreaker:
        return self._by_place[place]

    def __iter__(self) -> Iterator[UrlBreaker]:
        return iter(self._by_place.values())

    def get(self, place: Place) -> UrlBreaker | None:
        return self._by_place.get(place)

    @property
    def unclosed(self) -> list[UrlBreaker]:
        """Those that hold something back, or have a probe to come."""
        return [self._by_place[place] for place in self._unclosed]

    # -- endpoints come and go --------------------------------------------------------------------------

    def join(self, route: EndpointState) -> UrlBreaker:
        """The breaker of the endpoint's URL, which it has from now on."""
        place = (route.endpoint.tenant, breaker_key(route.endpoint.url))
        breaker = self._by_place.get(place)
        if breaker is None:
            breaker = self._by_place[place] = self._make(place)
            breaker.policy = route.breaker_policy
            breaker.routes = [route]
        else:
            breaker.routes.append(route)
            self._unsettled[breaker] = None
        return breaker

    def leave(self, route: EndpointState) -> None:
        """The endpoint is gone, or is called elsewhere."""
        route.breaker.routes.remove(route)
        self._unsettled[route.breaker] = None

    def unsettle(self, breaker: UrlBreaker) -> None:
        """It, or what an endpoint's policy says of it, is other than when it was last settled."""
        self._unsettled[breaker] = None

    def settle(self, now: int) -> list[tuple[UrlBreaker, bool]]:
        """Judge those whose endpoints have changed. Answers those that were closed by that, and those that are gone, each
        with True where something was known of it that others may know too."""
        ended: list[tuple[UrlBreaker, bool]] = []
        for breaker in self._unsettled:
            if not breaker.routes:
                ended.append((breaker, breaker.is_known))
                del self._by_place[breaker.place]
                breaker.policy = None  # answers on their way count nowhere
                breaker.close(now)
                continue
            voices = [route for route in breaker.routes if route.breaker_policy is not None]
            breaker.policy = min(voices, key=age).breaker_policy if voices else None
            if breaker.is_unheeded:
                breaker.close(now)
                ended.append((breaker, True))
        self._unsettled.clear()
        return ended

    def _make(self, place: Place) -> UrlBreaker:
        breaker = UrlBreaker(*place, None, self.touched if self._together else None, self._unclosed)
        heard, _ = self._ahead.pop(place, (None, 0))
        if heard is not None:
            breaker.hear_view(heard)
            self._unsettled[breaker] = None  # perhaps by who did not know yet that nobody heeds it
        return breaker

    # -- what others know of places that we have no endpoint for, yet or any more -----------------------

    def hear(self, view: View, now: int) -> None:
        """Another node said this of a place where we have no endpoint: it may have read the configuration first."""
        place = (view.tenant, view.key)
        self._ahead.pop(place, None)
        if view.state != "closed":
            self._ahead[place] = (view, now)

    def forget_heard(self, now: int) -> None:
        """Forget what no endpoint came for."""
        while self._ahead:
            place, (_, heard_at) = next(iter(self._ahead.items()))
            if abs(now - heard_at) < AHEAD_MS:
                return
            del self._ahead[place]


def breaker_key(url: str) -> str:
    """`scheme://host:port/path` of an accepted URL: the breaker does not care for the query."""
    return url.partition("?")[0]
