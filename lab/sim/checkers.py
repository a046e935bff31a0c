"""Rules that hold in every world, checked as it happens and at the end.

    accepted is never lost        an event that was answered with success is in the ledger with all its deliveries
    one end state                 each delivery ends once, in one of the four end states (`book`)
    only listed transitions       moves are those of core/delivery.TRANSITIONS (`book`)
    never early                   no request before the due time that the ledger showed when it was written
    attempts are bounded          recorded attempts of a delivery ≤ 1 + the policy's retries + what was spared
    one lease                     only who holds a delivery sends it, and no row is ever held twice (`book`)
    one event                     what is published again under its key or id stays one event
    one count                     dead letters are counted as many as are listed
    the same bytes                every request of an event has the body that was accepted, and a true signature
    nothing unrecorded            requests a receiver saw ≤ recorded attempts + `interrupted` entries
    delivered means delivered     a receiver saw it and wrote a success
    breaker                       while it stands open in the ledger, one probe at a time and none too soon;
                                  of several nodes one is the probe, while shared health answers (`health`);
                                  after all is mended, none is kept whose URL no endpoint has
    parked wakes                  after all is mended, nothing is parked whose reason no longer holds
    late commits                  what commits that stand still bring is claimed soon after they go on (`stalls`)
    age ends                      a backlog past its age has ended soon after all is mended, however large it is
    liveness                      after all is mended, everything is finished or waits for a time to come

Each check writes a sentence into `findings`; a run stops at the first.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from math import inf
from operator import attrgetter
from typing import Any

from msgspec import Struct

from lab.sim.backlog import ENDED_S
from lab.sim.book import Book, Row
from lab.sim.clock import SimClock
from lab.sim.health import SimHealth
from lab.sim.receivers import Seen
from lab.sim.stalls import CLAIMED_S, Stalls
from lab.sim.waits import Waits, wait_s
from surehook.core import ids, schedule
from surehook.core.model import BreakerRow
from surehook.core.outcome import succeeds
from surehook.core.policy import Policy, parse_policy
from surehook.core.profiles import PROFILES
from surehook.ports.reading import DeliveryFilter, DeliveryView

ACCEPT_S = 60.0  # between the moment that made a delivery due and its commit
DIAL_S = 15.0  # between the start of an attempt and its first byte
PAGE_ROWS = 1_000
ALONE_EVERY = 10  # deliveries, of which one is asked for by its id; the rest is in the list of all
DIGEST = attrgetter("digest")
HOP = "/elsewhere"  # where redirects lead: a hop belongs to the attempt that followed it


class Sender(Struct):
    """A process as the checks know it: which nodes it has been."""

    name: str
    nodes: list[bytes]
    clock: SimClock


class Checkers:
    """Sees every request, knows the world's book, and asks the real ledger at the end."""

    def __init__(self, book: Book) -> None:
        self.findings = book.findings
        self.senders: dict[str, Sender] = {}
        self.policies: dict[bytes, Policy] = {}  # endpoint → the policy it has now; absent: it changed
        self.loose_policies: set[bytes] = set()  # endpoints whose policy changed: bounds are unknown
        # … endpoints that were asked to heed no breaker any more, and whether that was answered
        self.released: dict[bytes, bool] = {}
        self.unheeding: set[bytes] = set()  # those that were given another policy, which has no breaker
        self.waits = Waits()  # … and what those say that have one
        self.urls: dict[bytes, tuple[str, str]] = {}  # endpoint → tenant and URL without query
        self.places: dict[bytes, set[tuple[str, str]]] = {}  # … and each that it may be at
        self.accepted: dict[bytes, int] = {}  # event → deliveries that were promised
        self.seen: dict[bytes, list[Seen]] = {}  # by delivery
        self.ages_at: dict[bytes, int] = {}  # row of a backlog → the instant of its age
        self.several_nodes = False
        self.prompt: dict[str, float] = {}  # seconds that a tenant's first calls wait at most
        self.stalls: Stalls | None = None  # when commits stand still and nothing else goes wrong
        self.began = 0.0  # when the world did
        self.health: SimHealth | None = None  # what several nodes know together
        self.probed: Callable[[Seen], None] = lambda seen: None  # a request came through an open breaker
        self.hastened: dict[tuple[str, str], float] = {}  # until when people asked a breaker to probe at once
        self._book = book
        self._probes: dict[tuple[str, str, int, str], list[Seen]] = {}

    def know(self, endpoint: bytes, tenant: str, url: str, policy: Any) -> None:
        self.urls[endpoint] = (tenant, url.partition("?")[0])
        if endpoint in self.policies:
            self.loose_policies.add(endpoint)
        self.policies[endpoint] = parse_policy(policy, PROFILES)

    @contextmanager
    def hastening(
        self, endpoint: bytes, clock: Callable[[], float], *, moves_to: str | None = None
    ) -> Iterator[None]:
        """Somebody mends the endpoint: from now until shortly after the answer its breaker may probe before its time,
        wherever it is: a move whose answer was lost may have been made."""
        tenant, url = self.urls[endpoint]
        places = self.places.setdefault(endpoint, set())
        places |= {(tenant, url), (tenant, moves_to or url)}
        self.hastened.update(dict.fromkeys(places, inf))
        try:
            yield
        finally:
            self.hastened.update(dict.fromkeys(places, clock()))

    @contextmanager
    def other_policy(self, endpoint: bytes, policy: Any, clock: Callable[[], float]) -> Iterator[None]:
        """The endpoint is given this policy instead. One without a breaker releases an open one, before the
        ledger has been told; one with a shorter wait shortens it."""
        self.loose_policies.add(endpoint)
        breaker = parse_policy(policy, PROFILES).breaker
        if breaker is None:
            self.unheeding.add(endpoint)
        with self.waits.asking(endpoint, inf if breaker is None else breaker.probe_after, clock):
            yield

    # -- as it happens -----------------------------------------------------------------------------------

    def promised(self, event: bytes, deliveries: int) -> None:
        """Somebody was told that an event is accepted."""
        before = self.accepted.setdefault(event, deliveries)
        if before != deliveries:
            self._find(f"{ids.text(ids.EVENT, event)} was answered {before} deliveries and then {deliveries}")
        known = self._book.events.get(event)
        if known is None:
            self._find(f"{ids.text(ids.EVENT, event)} was answered as accepted before it was committed")

    def arrived(self, seen: Seen) -> None:
        """A receiver has a complete request."""
        row = self._book.rows.get(ids.parse(ids.DELIVERY, seen.delivery))
        if row is None:
            self._find(f"{seen.delivery} was sent before it was committed")
            return
        requests = self.seen.setdefault(row.id, [])
        then = row.after_step(seen.wrote_step)
        if seen.path != HOP:
            requests.append(seen)
            self._check_wait(row, seen)
            self._check_time(row, seen, then)
            self._check_breaker(row, seen)
        if then is None or then.holder is None or then.holder not in self.senders[seen.sender].nodes:
            state = "not there" if then is None else then.state
            self._find(f"{row.name} was sent by {seen.sender}, which did not hold it; it was {state}")
        elif then.attempt != seen.attempt:
            self._find(f"{row.name} was sent as attempt {seen.attempt} while {then.attempt} was in hand")
        event = self._book.events[row.event]
        if ids.text(ids.EVENT, row.event) != seen.event:
            self._find(f"{row.name} carries the id of another event")
        if hashlib.sha256(event.body).hexdigest() != seen.digest:
            self._find(f"{row.name} attempt {seen.attempt} has other bytes than were accepted")
        if seen.replay != (row.replay_of is not None):
            self._find(f"{row.name} says replay: {seen.replay}")

    def _check_wait(self, row: Row, seen: Seen) -> None:
        if self.stalls is not None and seen.attempt == 1:
            last = max(
                n for n, then in enumerate(row.past) if then.holder is None and then.at <= seen.wrote_at
            )
            ready, claimed = (row.past[last : last + 2] * 2)[:2]  # unheld since: found below
            waited_s = self.stalls.well_s(ready.at - self.began, claimed.at - self.began)
            if waited_s > CLAIMED_S:
                self._find(
                    f"{row.name} was claimed {waited_s:.1f} s after it was ready, commits that stood still aside"
                )
        waited_s = seen.at - row.past[0].at
        most_s = self.prompt.get(self.urls[row.endpoint][0])
        if most_s is not None and seen.attempt == 1 and waited_s > most_s:
            self._find(
                f"{row.name} arrived {waited_s:.1f} s after its commit, beside a tenant that is owed much"
            )

    def _check_time(self, row: Row, seen: Seen, then: Any) -> None:
        """A clock that is set back between the start of an attempt and its first byte does not make it early."""
        if then is None:
            return
        clock = self.senders[seen.sender].clock
        wall = clock.highest(seen.wrote_wall, then.at - ACCEPT_S, seen.wrote_at)
        if wall < then.due_at:
            self._find(f"{row.name} attempt {seen.attempt} left {then.due_at - wall} ms before it was due")

    def _check_breaker(self, row: Row, seen: Seen) -> None:
        if row.endpoint in self.released or row.endpoint in self.unheeding:
            return  # no breaker holds it, and the one of its URL may not be written as closed yet
        key = self._asked(row, seen)
        if self.health is not None:
            self.health.arrived(seen, key, row.name)
        stand = self._book.breaker_at(key, seen.wrote_at)
        if stand is not None:
            self.probed(seen)
        if stand is None or self.several_nodes:
            return
        number, breaker, since = stand
        if seen.stamp * 1000 <= breaker.opened_at:
            return  # begun before it opened, on a connection that took its time
        # A clock may be set back while the probe dials.
        clock = self.senders[seen.sender].clock
        wall = clock.highest(seen.wrote_wall, seen.wrote_at - DIAL_S, seen.wrote_at)
        # What opened in memory before that may have been written long after.
        was_hastened = self.hastened.get(key, -inf) >= since - ACCEPT_S
        waits = self.waits.shorter(row.endpoint, breaker, since - ACCEPT_S)
        is_over = was_hastened or any(one.may_be_over(seen.wrote_at, clock) for one in waits)
        if wall < breaker.probe_at and not is_over and not self._set_back(seen, breaker, since):
            early = breaker.probe_at - wall
            self._find(f"{row.name} was sent {early} ms before the probe of its open breaker")
        earlier = self._probes.setdefault((*key, number, seen.sender), [])
        # A probe that was answered closes the breaker in memory, one that failed puts the next off by the breaker's wait;
        # the ledger hears of either later, by many seconds where commits are slow.
        # By a clock that was set ahead meanwhile, all of it may be long over.
        waited = bool(earlier) and (
            seen.wrote_at - earlier[-1].wrote_at >= min([wait_s(breaker), *(one.seconds for one in waits)])
            or clock.advanced(earlier[-1].wrote_at - DIAL_S, seen.wrote_at)
        )
        may = waited or was_hastened or any(probe.shows_life(seen.wrote_at) for probe in earlier)
        if earlier and not may:
            self._find(f"{row.name} is a second probe through one open breaker")
        earlier.append(seen)

    def _asked(self, row: Row, seen: Seen) -> tuple[str, str]:
        """The place that a request went to, which need not be where its endpoint is by now."""
        tenant, url = self.urls[row.endpoint]
        scheme, _, rest = url.partition("://")
        return tenant, f"{scheme}://{rest.partition('/')[0]}{seen.path.partition('?')[0]}"

    def _set_back(self, seen: Seen, breaker: BreakerRow, since: float) -> bool:
        """True where the clock was set back after the breaker opened: a probe is never further away than its wait from then on.
        Nor that far, by the watch, where the clock was set ahead again: what it shows is all that is known."""
        clock = self.senders[seen.sender].clock
        at = clock.set_back(since - DIAL_S, seen.wrote_at)
        if at is None:
            return False
        return seen.wrote_at - at >= wait_s(breaker) or clock.advanced(at, seen.wrote_at)

    # -- at the end --------------------------------------------------------------------------------------

    async def compare(self, ledger: Any) -> None:
        """The real ledger tells the same story as the world's book, and nothing accepted is missing."""
        letters = await ledger.dead_letters(DeliveryFilter(), limit=len(self._book.rows) + 1, after=None)
        listed = len(letters.data)
        if (counted := await ledger.dead_letter_count()) != listed:
            self._find(f"{counted} dead letters are counted, and {listed} are listed")
        made = Counter(row.event for row in self._book.rows.values() if row.replay_of is None)
        for event, promised in sorted(self.accepted.items()):
            name = ids.text(ids.EVENT, event)
            stored = await ledger.event(event)
            if stored is None:
                self._find(f"{name} was accepted and is not in the ledger")
            elif stored.body != self._book.events[event].body:
                self._find(f"{name} is stored with other bytes than were accepted")
            if made[event] != promised:
                self._find(f"{name} was answered with {promised} deliveries and has {made[event]}")
        views = await _listed(ledger)
        for number, row in enumerate(list(self._book.rows.values())):
            view = await ledger.delivery(row.id) if number % ALONE_EVERY == 0 else views.get(row.id)
            if view is None:
                self._find(f"{row.name} was accepted and is not in the ledger")
                continue
            if view.state != row.state:
                self._find(f"{row.name} is {view.state} in the ledger and was left {row.state}")
            history = await ledger.attempts(row.id)
            self._compare_history(row, history)

    def _compare_history(self, row: Row, history: list[Any]) -> None:
        kinds = Counter((entry.kind, entry.number) for entry in history)
        mine = Counter((entry.kind, entry.number) for entry in row.entries)
        mine.update({("interrupted", number): count for number, count in row.interrupted.items()})
        kinds = Counter({key: count for key, count in kinds.items() if key[0] != "ended"})
        mine = Counter({key: count for key, count in mine.items() if key[0] != "ended"})
        if kinds != mine:
            missing, extra = dict(mine - kinds), dict(kinds - mine)
            self._find(f"the history of {row.name} lacks {missing} and has {extra} too much")

    def settle(self) -> None:
        """Compare the book with the receivers' records once every machine has stopped."""
        for row in self._book.rows.values():
            requests = self.seen.get(row.id, [])
            self._settle_counts(row, requests)
            self._settle_bound(row)
            if row.end == "delivered" and not self._saw_success(row, requests):
                self._find(f"{row.name} is delivered, but no receiver answered it with a success")
            if row.state == "sending":
                self._find(f"{row.name} is held although every machine has stopped in order")

    def _settle_counts(self, row: Row, requests: list[Seen]) -> None:
        recorded = Counter(entry.number for entry in row.entries if entry.kind == "attempt")
        for number, count in sorted(Counter(seen.attempt for seen in requests).items()):
            written = recorded[number] + row.interrupted.get(number, 0)
            if count > written:
                self._find(
                    f"{row.name} attempt {number} was sent {count} times and stands {written} times in the book"
                )

    def _settle_bound(self, row: Row) -> None:
        if row.endpoint in self.loose_policies or row.endpoint not in self.policies:
            return
        policy = self.policies[row.endpoint]
        if policy.on_exhausted == "enter_failure":
            return  # activation begins the schedule anew
        made = sum(1 for entry in row.entries if entry.kind == "attempt" and entry.number - row.spared > 0)
        allowed = 1 + (schedule.retries(policy) if policy.auto_retry else 1) + row.spared
        if made > allowed:
            self._find(f"{row.name} was tried {made} times where its policy allows {allowed}")

    def _saw_success(self, row: Row, requests: list[Seen]) -> bool:
        policy = self.policies.get(row.endpoint)
        if row.endpoint in self.loose_policies or policy is None:
            return bool(requests)
        success = succeeds(policy)
        return any(seen.answered in success or seen.answered in (301, 302) for seen in requests)

    def settle_events(self) -> None:
        """Whatever was published once, or again under its key or id, is one event. Not for worlds whose clocks
        jump: keys are kept for a day."""
        for _, twins in groupby(sorted(self._book.events.values(), key=DIGEST), key=DIGEST):
            names = [ids.text(ids.EVENT, event.id) for event in twins]
            if len(names) > 1:
                self._find(f"one thing that was published became {len(names)} events: {', '.join(names)}")

    # -- coming to rest ------------------------------------------------------------------------------------

    def restless(self, now: int, statuses: dict[bytes, str]) -> list[str]:
        """Everything that still has to move, each with its sentence; empty once the world is at rest.

        `now` is the wall clock that judges due times (or a later instant, to hear what would move until
        then), `statuses` the endpoints that still exist.
        """
        sentences = []
        for row in self._book.rows.values():
            if row.end is None:
                sentence = self._unrest(row, now, statuses.get(row.endpoint))
                if sentence is not None:
                    sentences.append(f"{row.name} {sentence}")
        there = {self.urls[endpoint] for endpoint in statuses if endpoint in self.urls}
        heeded = {self.urls[one] for one in statuses if one in self.urls and not self.released.get(one)}
        sentences += [
            f"the breaker of {place[1]} is kept, and no endpoint has that URL"
            for place in self._book.breakers
            if place not in there
        ]
        sentences += [
            f"the breaker of {place[1]} is kept open for {row.reason}, and no policy there has one"
            for place, row in self._book.breakers.items()
            if place in there and place not in heeded and row.reason != "key"
        ]
        return sentences

    def aged(self, now: int, *, over: bool) -> bool:
        """Rows of a backlog are past their age and have not ended. A finding where there was time for it: `ENDED_S`
        since they came of age, and since all was mended (`over`)."""
        rows = self._book.rows
        aged = [(at, rows[one]) for one, at in self.ages_at.items() if at < now and rows[one].end is None]
        late = [row for at, row in aged if at < now - ENDED_S * 1000]
        if late and over:
            self._find(f"{len(late)} deliveries are past their age and wait, {late[0].name} first")
        return bool(aged)

    def _unrest(self, row: Row, now: int, status: str | None) -> str | None:
        if status is None:
            return f"is {row.state} although its endpoint is deleted"
        late = f"was due {now - row.due_at} ms ago"
        if row.state == "sending":
            return None if row.due_at > now else f"is held by a node, {late}, and does not end"
        if row.state != "parked":
            return None if row.due_at > now else f"is {row.state}, {late}, and nobody sends it"
        breaker = self._book.breakers.get(self.urls[row.endpoint])
        if breaker is not None and (breaker.probe_at > now or row.due_at > now):
            return None  # whatever it was parked for: a probe comes first, and needs what is due
        if row.parked in ("breaker", "key"):
            return f"is parked for {row.parked}, and no breaker has a probe to come"
        if row.parked in ("paused", "inactive", "failure"):
            return (
                None if row.parked == status else f"is parked for {row.parked} while its endpoint is {status}"
            )
        if status != "active":
            return None  # parked before its endpoint was switched off, by an answer: nobody may take it back
        return None if row.due_at > now else f"is parked for {row.parked}, {late}"

    def _find(self, sentence: str) -> None:
        self._book.find(sentence)


async def _listed(ledger: Any) -> dict[bytes, DeliveryView]:
    """Every delivery as the list of all of them shows it."""
    views: dict[bytes, DeliveryView] = {}
    after: bytes | None = None
    while True:
        page = await ledger.deliveries(DeliveryFilter(), limit=PAGE_ROWS, after=after)
        views.update((view.id, view) for view in page.data)
        if page.next is None:
            return views
        after = page.next
