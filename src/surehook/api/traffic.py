"""Traffic at the door: requests by route and status with their time, and refusals that go on.

Routes are the templates of the table of calls, so strangers cannot make labels. A refusal that comes by the thousand is
reported when it begins and when it is over, with its count; a refused key with the address that it came from. Refusals
of the ledger are reported by delivery/outage.py, since others meet them as well.
"""

from __future__ import annotations

from collections.abc import Awaitable

from msgspec import Struct

from surehook.api.ingest import App, Receive, Scope, Send
from surehook.api.problems import OF_LEDGER, PROBLEM, STATUS
from surehook.core.episodes import Episode, Episodes
from surehook.core.histogram import Histogram
from surehook.delivery.outage import Outage
from surehook.ports.clock import Clock
from surehook.ports.telemetry import Telemetry

ROUTE = "surehook.route"  # in a request's scope: the template of the call that took it
PUBLISHING = ("/v1/events", "/v1/events/batch")
FIXED = frozenset((*PUBLISHING, "/openapi.json", "/docs"))
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
OTHER = "other"
TIME_MS = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000)
HUNG_UP = 499  # no answer was sent: the caller was gone before it
QUIET_MS = 5_000  # refusals this far apart are two episodes
KEY_QUIET_MS = 60_000  # … and refused keys from one address
REFUSING_MS = 5_000  # nothing but refusals for so long: not ready
# Refusals of publishing that say: not now, whoever asks.
TAKES_NONE = "the ledger takes no events"
SHUT = {
    "overloaded": "too many events wait for the disk",
    "disk_full": "the disk is at its floor",
    "ledger_unavailable": TAKES_NONE,
    "outcome_unknown": TAKES_NONE,
}


class Accepted(Struct):
    """Accepted requests of one path: the hot path is counted in two steps."""

    times: Histogram
    count: int = 0


class Traffic:
    """The counts since the start, and the refusals that go on."""

    def __init__(self, *, clock: Clock, telemetry: Telemetry, outage: Outage) -> None:
        self.now = clock.boot
        self.times: dict[tuple[str, str], Histogram] = {}  # (method, route)
        self._requests: dict[tuple[str, str, int], int] = {}  # (method, route, status), but for `_hot`
        self._hot = {path: Accepted(Histogram(TIME_MS)) for path in PUBLISHING}
        self.times.update((("POST", path), hot.times) for path, hot in self._hot.items())
        self._telemetry = telemetry
        self._refusals = Episodes(quiet_ms=QUIET_MS)
        self._keys = Episodes(quiet_ms=KEY_QUIET_MS)
        self._outage = outage
        self._shut: Episode | None = None  # publishes refused by the codes of SHUT, whichever
        self._published = 0.0  # seconds of the boot clock

    @property
    def requests(self) -> dict[tuple[str, str, int], int]:
        """Answers by method, route and status."""
        accepted = {("POST", path, 202): hot.count for path, hot in self._hot.items() if hot.count}
        return self._requests | accepted

    def _now(self) -> int:
        return int(self.now() * 1000)

    def end(self, scope: Scope, status: int, began: float) -> None:
        """A request has been answered."""
        ended = self.now()
        took_ms = int((ended - began) * 1000)
        if status == 202:
            hot = self._hot.get(scope["path"])
            if hot is not None:
                hot.count += 1
                hot.times.note(took_ms)
                self._published = ended
                return
        route = scope.get(ROUTE)
        if route is None:
            route = scope["path"] if scope["path"] in FIXED else OTHER
        method = scope["method"] if scope["method"] in METHODS else OTHER
        counted = (method, route, status)
        self._requests[counted] = self._requests.get(counted, 0) + 1
        took = self.times.get((method, route))
        if took is None:
            took = self.times[method, route] = Histogram(TIME_MS)
        took.note(took_ms)
        if status in (401, 429, 503):
            self._refused(scope, status)

    def _refused(self, scope: Scope, status: int) -> None:
        code, now = scope.get(PROBLEM, str(status)), self._now()
        if code == "not_ready":
            return
        if status != 401:
            if code in SHUT and scope["path"] in PUBLISHING:
                self._shut_by(code, now)
            cause = scope.get(OF_LEDGER)
            if cause is not None:
                self._outage.met("door", cause)
            elif self._refusals.met(code, now=now):
                self._telemetry.fact("refusals.began", code=code)
            return
        client = scope.get("client")
        address = client[0] if client else "unknown"
        if self._keys.met(address, now=now):
            self._telemetry.fact("key.refused", address=address)

    def _shut_by(self, code: str, now: int) -> None:
        """Note a refused publish: the first of several in a row, or one more."""
        shut = self._shut
        if shut is None or now - shut.last >= QUIET_MS:
            self._shut = Episode(code, now, now)
        else:
            shut.name, shut.last = code, now

    def look(self) -> None:
        """Report what is over. Once a second."""
        now = self._now()
        for episode in self._refusals.over(now=now):
            lasted_s = (episode.last - episode.since) / 1000
            self._telemetry.fact(
                "refusals.ended", code=episode.name, refused=episode.count, lasted_s=lasted_s
            )
        for episode in self._keys.over(now=now):
            if episode.count > 1:
                self._telemetry.fact("key.refusals_ended", address=episode.name, refused=episode.count)

    def refusing(self) -> str | None:
        """The reason why every publish has been refused for a while; None if one went through or none came."""
        now, shut = self._now(), self._shut
        if shut is None or now - shut.last >= QUIET_MS:
            return None
        since = max(shut.since, int(self._published * 1000))
        return SHUT[shut.name] if now - since >= REFUSING_MS else None


class Watched:
    """ASGI: counts what passes."""

    def __init__(self, app: App, traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began = self._traffic.now()
        if scope["method"] == "POST" and scope["path"] in PUBLISHING:
            # Whoever answers these leaves the status in the scope.
            try:
                return await self._app(scope, receive, send)
            finally:
                self._traffic.end(scope, scope.get(STATUS, HUNG_UP), began)
        status = HUNG_UP

        def counted(message: Scope) -> Awaitable[None]:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            return send(message)

        try:
            await self._app(scope, receive, counted)
        finally:
            self._traffic.end(scope, status, began)
