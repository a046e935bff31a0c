"""Rules that hold at the receiver's end, judged from its tables by statements of the world's own.

2xx means stored        when the application answers with a success, the event and these very bytes are committed
no forgery              what was tampered with on its way is answered with no success, and leaves no row
nothing lost            every event that the sender accepted is in the inbox, with the bytes that were accepted
once                    … exactly once, and nothing else is there; no conflict, since the sender never says two things
one effect              a handler's row is there for each run that was processed, once, and for no other run
all at its end          after all is mended, nothing is open, parked, dead or rejected, or waits for anybody
in its turn             a document's journal, without what came early or again, is its story: each verdict, each state
heard in turn           handlers heard of a document's moves by number, and of each for the first time once
a word is carried out   what people said about a document is in its journal, and nothing of it waits at the end
undone with its document  where moves are rejected: each taking back is in the journal once for each word, goes on from where the
                        document stood, and was heard once by who undoes if it moved the document back, and not at all if not
nothing after the end   where numbers are given up instead: states only go on, a terminal one is never left, no wait is cut short,
                        and no number of an event that was stored before the wait for it was over, and is tried again as it fails
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from msgspec import Struct

from lab.sim.inbox.application import UNDO
from lab.sim.inbox.database import Database
from lab.sim.inbox.plan import Given, Plan
from lab.sim.inbox.stories import RANK, TERMINAL, Line
from surehook.core import ids
from surehook.core.model import Event

HANDLERS = {
    "invoice.paid": ("ledger", "paid"),
    "invoice.due": ("ledger", "due"),
    "identity.verified": ("identity",),
}
UNSETTLED = ("early", "duplicate")  # verdicts that settle nothing
ROOM = 64  # events that may wait for a document, beyond which no story goes
_NEWEST = "r.number = (select max(number) from surehook_inbox_runs where event = r.event)"
_ENDED = ("finalized", "ignored")


class Step(Struct, frozen=True):
    """One line of a document's journal."""

    event: str
    type: str
    verdict: str
    rule: str
    before: str
    after: str
    sequence: int | None
    at: int
    by: str | None
    reason: str


class Oracle:
    """`find` is told what must never be."""

    def __init__(self, plan: Plan, database: Database, find: Callable[[str], None]) -> None:
        self._plan = plan
        self._database = database
        self._find = find
        self.promised: set[str] = set()  # documents of which a clerk was told that they go on

    # -- as it happens -------------------------------------------------------------------------------------------

    def answered(self, event_id: str, body: bytes, status: int) -> None:
        """The application is about to give this answer."""
        if not 200 <= status < 300:
            return
        stored = self._database.rows(
            "select body_sha256 from surehook_inbox_events where event_id = ?", event_id
        )
        if not stored:
            self._find(f"{event_id} is answered {status} and not in the inbox")
        elif stored[0][0] != hashlib.sha256(body).digest():
            self._find(f"{event_id} is answered {status} and stored with other bytes")

    def forged(self, event_id: str, status: int | None) -> None:
        """A request with other bytes than were signed was answered."""
        if status is not None and status < 400:
            self._find(f"{event_id} was tampered with and answered {status}")

    # -- coming to rest ------------------------------------------------------------------------------------------

    def open(self) -> int:
        """Count the runs and documents that still move by themselves, but for documents that wait longer than any world."""
        runs = self._database.count(
            "select count(*) from surehook_inbox_runs where state = 'accepted' or (state <> 'held' and due_at is not null)"
        )
        if self._plan.patient:
            # … unless somebody has said something of it
            return runs + self._database.count(
                "select count(*) from surehook_inbox_documents where json_array_length(body, '$.words') > 0"
            )
        return runs + self._database.count(
            "select count(*) from surehook_inbox_documents where wake_at is not null"
        )

    def unfinished(self) -> list[str]:
        """States of newest runs that somebody has to do something about, or that wait for what will not come."""
        found = self._database.rows(
            f"select r.state, r.error_code from surehook_inbox_runs r where {_NEWEST}"
        )
        return sorted({state for state, code in found if not self._is_at_its_end(state, code)})

    def _is_at_its_end(self, state: str, code: str | None) -> bool:
        """True at an end; what was taken back is decided on anew, and may contradict what happened since."""
        return state in _ENDED or (self._plan.undo and (state, code) == ("rejected", "conflict"))

    # -- at the end ----------------------------------------------------------------------------------------------

    def judge(self, accepted: dict[bytes, Event]) -> None:
        """Compare the tables with what the sender accepted (by id)."""
        by_id = {ids.text(ids.EVENT, event.id): event for event in accepted.values()}
        given = {one.key: one for one in self._plan.given}
        said = {name: given[json.loads(event.body)["data"]["key"]] for name, event in by_id.items()}
        self._stored(by_id)
        self._effects(said)
        self._ends(said)
        for document in self._plan.stories:
            journal = self._journal(document)
            owed = {name: one for name, one in said.items() if one.document == document}
            self._heard(document, owed)
            self._words(document, journal)
            if self._plan.undo:
                self._undone(document, journal)
                continue
            if len(owed) < len(self._plan.stories[document]):
                continue  # a publisher gave up: the story has a hole that is nobody's fault
            if self._plan.exact:
                self._exact(document, journal, owed)
            else:
                self._forward(document, journal, owed)

    def _stored(self, by_id: dict[str, Event]) -> None:
        rows = self._database.rows(
            "select e.event_id, r.body from surehook_inbox_events e left join surehook_inbox_requests r on r.id = e.request"
        )
        counts = Counter(name for name, _ in rows)
        for name, event in sorted(by_id.items()):
            if counts[name] != 1:
                self._find(f"{name} was accepted by the sender and is {counts[name]} times in the inbox")
            elif [body for other, body in rows if other == name] != [event.body]:
                self._find(f"{name} is in the inbox with other bytes than were accepted")
        for name in sorted(set(counts) - set(by_id)):
            self._find(f"{name} is in the inbox and was never accepted")
        if self._database.count("select count(*) from surehook_inbox_conflicts"):
            self._find("there is a conflict, and nobody said two things under one id")

    def _effects(self, said: dict[str, Given]) -> None:
        runs = self._database.rows(
            "select e.event_id, e.type, r.number, r.processed_at is not null from surehook_inbox_runs r"
            " join surehook_inbox_events e on e.id = r.event"
        )
        rows = Counter(
            self._database.rows("select event_id, replay, handler from effects where handler <> ?", UNDO)
        )
        for name, type, number, is_processed in sorted(runs):
            for handler in HANDLERS.get(type, ("signing",)):
                count, owed = rows.pop((name, number, handler), 0), int(is_processed)
                if count != owed:
                    told = f"{name} ({said[name].key if name in said else '?'}) run {number}"
                    self._find(f"{told}: handler {handler} took effect {count} times instead of {owed}")
        for name, number, handler in sorted(rows):
            self._find(f"{name} run {number} has an effect of {handler}, and there is no such run")

    def _ends(self, said: dict[str, Given]) -> None:
        newest = self._database.rows(
            "select e.event_id, r.state, r.error_code from surehook_inbox_runs r"
            f" join surehook_inbox_events e on e.id = r.event where {_NEWEST}"
        )
        for name, state, code in sorted(newest):
            one = said.get(name)
            if one is None:
                continue
            may = self._may_end(one)
            if state not in may:
                self._find(f"{name} ({one.key}) ended {state} ({code}) instead of {' or '.join(may)}")

    def _may_end(self, one: Given) -> tuple[str, ...]:
        if one.line is None:
            ignores = self._plan.tempers.get(one.key, ("fails", 0))[0] == "ignores"
            return ("ignored",) if ignores else ("finalized",)
        if self._plan.undo:
            return (*_ENDED, "rejected")
        if not self._plan.exact:
            return _ENDED
        heard = one.line.verdict == "applied" or one.type in HANDLERS
        return ("finalized",) if heard else ("ignored",)

    # -- documents -----------------------------------------------------------------------------------------------

    def _journal(self, document: str) -> list[Step]:
        rows = self._database.rows(
            "select event_id, body from surehook_inbox_steps where document = ? order by rowid", document
        )
        return [_step(name, json.loads(body)) for name, body in rows]

    def _heard(self, document: str, owed: dict[str, Given]) -> None:
        """By number, where one is there; a replay of what took effect is heard at any time, and moves nothing.

        Information that its handler refused has had its turn by that, and is heard when somebody replays it."""
        refused = {name for name, one in owed.items() if one.type in HANDLERS and self._refuses(one)}
        rows = self._database.rows(
            "select event_id, sequence from effects where document = ? and sequence is not null order by id",
            document,
        )
        first: dict[str, int] = {}
        for name, sequence in rows:
            if name not in refused:
                first.setdefault(name, sequence)
        heard = list(first.values())
        if heard != sorted(set(heard)):
            self._find(f"the handler heard of {document} in the order {heard}")

    def _refuses(self, one: Given) -> bool:
        return self._plan.tempers.get(one.key, ("fails", 0))[0] == "refuses"

    def _exact(self, document: str, journal: list[Step], owed: dict[str, Given]) -> None:
        told = [step for step in journal if step.verdict not in UNSETTLED and step.rule != "waited_too_long"]
        floating = self._floating(owed)
        said = [(step.event, step.verdict, step.after) for step in told if step.event not in floating]
        story = sorted(
            (one.sequence, name, one.line) for name, one in owed.items() if one.sequence and one.line
        )
        if said != [(name, line.verdict, line.after) for _, name, line in story]:
            short = [(owed[name].key if name in owed else name, *rest) for name, *rest in said]
            self._find(f"the journal of {document} is not its story: {short}")
        self._float(document, told, floating)
        last = story[-1][2].after
        state = self._database.rows("select state from surehook_inbox_documents where document = ?", document)
        if state != [(last,)]:
            self._find(f"{document} is left {state} instead of {last}")

    def _floating(self, owed: dict[str, Given]) -> dict[str, Line]:
        """Events without a number that are a matter of the document: none where no pattern of `follow` fits them."""
        found = {name: one.line for name, one in owed.items() if one.sequence is None and one.line}
        return {} if self._plan.narrow else found

    def _words(self, document: str, journal: list[Step]) -> None:
        if document in self.promised and not any(step.by for step in journal):
            self._find(f"a clerk was told that {document} goes on, and the journal does not know of it")
        for (body,) in self._database.rows(
            "select body from surehook_inbox_documents where document = ? and body is not null", document
        ):
            if json.loads(body).get("words"):
                self._find(f"a word about {document} was never carried out")

    def _float(self, document: str, told: list[Step], floating: dict[str, Line]) -> None:
        said = Counter((step.event, step.verdict) for step in told if step.event in floating)
        if said != Counter((name, line.verdict) for name, line in floating.items()):
            self._find(f"what has no number in {document} came to {dict(said)}")

    def _forward(self, document: str, journal: list[Step], owed: dict[str, Given]) -> None:
        settled = [step for step in journal if step.event and step.verdict not in UNSETTLED]
        for name, count in Counter(step.event for step in settled).items():
            if count != 1:
                self._find(f"{name} of {document} was settled {count} times")
        matters = {name for name, one in owed.items() if one.sequence} | set(self._floating(owed))
        if missing := matters - {step.event for step in settled}:
            self._find(f"{sorted(missing)} of {document} were never settled")
        for before, step in pairwise(journal):
            if step.before != before.after:
                self._find(f"{document} went from {before.after} to {step.before} without a word")
        moved = [step for step in settled if step.verdict == "applied"]
        for step in moved:
            if RANK[step.before] == TERMINAL or RANK[step.after] < RANK[step.before]:
                self._find(f"{document} went from {step.before} to {step.after} by {step.type}")
        numbers = [step.sequence for step in settled if step.sequence and step.rule != "settled_number"]
        if numbers != sorted(set(numbers)):
            self._find(f"events of {document} took effect in the order {numbers}")
        if not {"skew", "steps"} & set(self._plan.faults):
            stored = dict(self._database.rows("select event_id, received_at from surehook_inbox_events"))
            self._patience(document, journal, stored)
            self._in_time(document, journal, owed, stored)

    def _waits_since(self, step: Step, stored: dict[str, int]) -> int:
        """From when an early event waits. That there was no room for it at first is not in the journal."""
        return step.at if self._plan.order.count >= ROOM else stored[step.event]

    def _in_time(
        self, document: str, journal: list[Step], owed: dict[str, Given], stored: dict[str, int]
    ) -> None:
        """No number is given up of an event that was stored before the wait for it was over."""
        wait_ms = round((self._plan.order.wait_s or 0) * 1000)
        late = {
            step.sequence: step.event
            for step in journal
            if step.rule == "settled_number" and self._is_to_be_waited_for(step.event, owed[step.event])
        }
        since: dict[str, int] = {}
        for step in journal:
            if step.verdict == "early":
                since.setdefault(step.event, self._waits_since(step, stored))
            elif step.event:
                since.pop(step.event, None)
            if step.rule != "gave_up" or not step.reason.endswith(" s"):
                continue
            for number in _numbers_of(step.reason) & set(late):
                waited = [at for name, at in since.items() if (owed[name].sequence or number + 1) > number]
                if waited and stored[late[number]] < min(waited) + wait_ms:
                    self._find(
                        f"number {number} of {document} was given up, and {late[number]} was there in time"
                    )

    def _is_to_be_waited_for(self, name: str, one: Given) -> bool:
        """Tell whether it was tried again as long as it failed, and its schema version was known from the beginning."""
        ends = self._database.rows(
            "select r.state from surehook_inbox_runs r join surehook_inbox_events e on e.id = r.event"
            " where e.event_id = ? and r.number = 0",
            name,
        )
        return one.schema == "1" and ends in ([("finalized",)], [("ignored",)])

    def _undone(self, document: str, journal: list[Step]) -> None:
        """Compare the two where moves are rejected and no story says what comes of it: both have to be as one."""
        for before, step in pairwise(journal):
            if step.before != before.after:
                self._find(f"{document} went from {before.after} to {step.before} without a word")
        back = [step for step in journal if step.rule in ("undone", "not_undone")]
        said = Counter(
            name
            for (name,) in self._database.rows(
                "select e.event_id from surehook_inbox_runs r join surehook_inbox_events e on e.id = r.event"
                " where r.error_code = 'compliance' and exists (select 1 from surehook_inbox_steps s"
                " where s.event = e.id and s.document = ?)",
                document,
            )
        )
        if said != Counter(step.event for step in back):
            self._find(
                f"of {document} {dict(said)} were rejected, and {[step.event for step in back]} taken back"
            )
        heard = self._database.rows(
            "select event_id, before, after from effects where document = ? and handler = ? order by id",
            document,
            UNDO,
        )
        owed = [(step.event, step.before, step.after) for step in back if step.rule == "undone"]
        if heard != owed:
            self._find(f"what was undone of {document} is {heard} instead of {owed}")

    def _patience(self, document: str, journal: list[Step], stored: dict[str, int]) -> None:
        """No number is given up before an event has waited its time for it, however many do."""
        wait_ms = round((self._plan.order.wait_s or 0) * 1000)
        since: dict[str, int] = {}
        for at, step in enumerate(journal):
            if step.verdict == "early":
                since.setdefault(step.event, self._waits_since(step, stored))
            # What a person let go and is tried again since waits no more.
            was_released = step.reason.endswith(" released") and any(one.by for one in journal[:at])
            if step.rule == "gave_up" and step.by is None and not was_released:
                waited = step.at - min(since.values(), default=step.at)
                if waited < wait_ms:
                    self._find(f"{document} gave numbers up after {waited} ms, at line {at}")
            elif step.verdict != "early":
                since.pop(step.event, None)


def _numbers_of(reason: str) -> set[int]:
    """The numbers that a step says were given up: `number 2 …` or `numbers 2 to 4 …`."""
    words = reason.split()
    first = int(words[1])
    return set(range(first, int(words[3]) + 1)) if words[0] == "numbers" else {first}


def _step(event: str, body: dict[str, Any]) -> Step:
    return Step(
        event=event,
        type=body["type"],
        verdict=body["verdict"],
        rule=body["rule"],
        before=body["before"],
        after=body["after"],
        sequence=body.get("sequence"),
        at=body["at"],
        by=body.get("by"),
        reason=body["reason"],
    )
