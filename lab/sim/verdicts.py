"""Check that what is said of a URL was found out there: breakers and statuses against the calls that were answered.

breaker    it opens on no more calls than were answered at its URL since it last opened (one process: with
           several, a row may be another process's word), and, where a window is known, on no more than were ever
           answered there within it
endpoint   it leaves `active` only after a call of the URL that it has
timeout    no call ends as one over an answer that had begun to come in time, and was read late because its process stood
           still
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import Any

from surehook.core.model import BreakerRow, Endpoint, RecordedEndpoint
from surehook.ports.transport import Answer, Exchange, Request

Place = tuple[str, str]  # tenant, and a URL without its query
SLIDES_S = 1.0  # more than a window slides by at a time
STOOD_S = 2.5  # a call that ends so long after its deadline does so because its process stood still


class Verdicts:
    """Hears every answer and every record."""

    def __init__(self, find: Callable[[str], None], *, time: Callable[[], float], sole: bool) -> None:
        """`time`: loop seconds."""
        self._find = find
        self._time = time
        self._sole = sole
        self._urls: dict[bytes, set[str]] = {}  # that an endpoint may have at this moment
        self._calls: Counter[str] = Counter()  # by URL with its query, which names its endpoint
        self._answered: Counter[Place] = Counter()
        self._before: Counter[Place] = Counter()  # … when it last opened
        self._open: set[Place] = set()
        self._windows: dict[Place, float] = {}  # those that are known, in seconds
        self._within: dict[Place, deque[float]] = {}  # when calls were answered, of the last window
        self._most: Counter[Place] = Counter()  # … and the most that ever were within one

    def know(self, endpoint: Endpoint, window_s: float | None) -> None:
        """An endpoint of the world's beginning. `window_s`: its breaker counts for so long, on a clock that never makes it
        longer; None: nobody can say."""
        self.at(endpoint.id, endpoint.url)
        if window_s is not None:
            self._windows[endpoint.tenant, endpoint.url.partition("?")[0]] = window_s

    def at(self, endpoint: bytes, url: str) -> None:
        """The endpoint has this URL from now on."""
        self._urls[endpoint] = {url}

    def moves(self, endpoint: bytes, url: str) -> None:
        """It is asked to have this one: from some moment on, or never, as long as nobody is told."""
        self._urls[endpoint].add(url)

    def answered(self, tenant: str, url: str) -> None:
        place = (tenant, url.partition("?")[0])
        self._calls[url] += 1
        self._answered[place] += 1
        if place in self._windows:
            within, now = self._within.setdefault(place, deque()), self._time()
            within.append(now)
            while within[0] < now - self._windows[place] - SLIDES_S:
                within.popleft()
            self._most[place] = max(self._most[place], len(within))

    def unread(self, url: str, lay_s: float) -> None:
        """A call ended as a time-out, and what had come in time lay unread for so long."""
        self._find(f"a call of {url} timed out, and its answer had lain there for {lay_s:.1f} s")

    def stands_open(self, place: Place) -> None:
        """It is open before anybody begins: what opens it again opens nothing."""
        self._open.add(place)

    def recorded(self, breakers: Sequence[BreakerRow], changes: Sequence[RecordedEndpoint]) -> None:
        """A window of results was committed."""
        for row in breakers:
            self._turned((row.tenant, row.key), row)
        for change in changes:
            urls = self._urls.get(change.endpoint, set())
            if change.status != "active" and urls and not any(self._calls[url] for url in urls):
                self._find(f"an endpoint became {change.status} and was never called at {min(urls)}")

    def _turned(self, place: Place, row: BreakerRow) -> None:
        if row.state == "closed":
            self._open.discard(place)
        elif place not in self._open:
            self._open.add(place)
            there = self._answered[place] - self._before[place]
            if self._sole and row.calls > there:
                self._find(
                    f"the breaker of {place[1]} opened on {row.calls} calls, of which {there} went there"
                )
            if self._sole and place in self._windows and row.calls > self._most[place]:
                self._find(
                    f"the breaker of {place[1]} opened on {row.calls} calls, of which {self._most[place]} at most were"
                    f" within {self._windows[place]:g} s"
                )
            self._before[place] = self._answered[place]


class Overheard:
    """A transport whose answers are heard as well. `read` says in which step something that had come was last read or given
    up, and when it had come; `step` and `time` are the loop's."""

    def __init__(
        self,
        inner: Any,
        verdicts: Verdicts,
        *,
        read: Callable[[], tuple[int, float]],
        step: Callable[[], int],
        time: Callable[[], float],
    ) -> None:
        self._inner = inner
        self._verdicts = verdicts
        self._read = read
        self._step = step
        self._time = time

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def send(self, request: Request, done: Callable[[Answer], None]) -> Exchange:
        deadline = self._time() + request.timeout_s

        def hear(answer: Answer) -> None:
            if answer.failure == "timeout":
                self._ran_out(request, deadline)
            if answer.failure != "aborted":
                target: Any = request.target
                self._verdicts.answered(target.tenant, target.url)
            done(answer)

        sent: Exchange = self._inner.send(request, hear)
        return sent

    def _ran_out(self, request: Request, deadline: float) -> None:
        step, came_at = self._read()
        is_late = self._time() - deadline > STOOD_S
        if is_late and step == self._step() and came_at <= deadline:
            target: Any = request.target
            self._verdicts.unread(target.url, self._time() - came_at)
