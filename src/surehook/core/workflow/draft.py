"""A document while a decision is being made: the stored value opened up, changed, and closed again."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache

from surehook.core.workflow.check import WorkflowError
from surehook.core.workflow.table import Table
from surehook.core.workflow.table_values import BRANCHES_MAX, PARTIES_MAX
from surehook.core.workflow.values import Arrival, Branch, Document, Party, Retried, Seen, Waiting

_OTHER_TABLE = "keep that state in the table for as long as documents are in it, or process these with a table that has it"
_VERSION = re.compile(r"[vV]?(\d{1,9}(?:\.\d{1,9}){0,3})", re.ASCII)


@lru_cache(maxsize=64)  # a decision asks for that of its event three times
def digest_of(event_id: str, source: str = "") -> str:
    """Return what an id is remembered as: 64 bits of BLAKE2 in hex, so that memory is bounded whatever the ids are.

    Within the few dozen events of one document two ids meet by chance once in 10^16 documents.
    """
    text = f"{source}\0{event_id}" if source else event_id
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def find_seen(seen: Mapping[str, Seen], event_id: str, source: str) -> Seen | None:
    """Find what is remembered of an event, also where an older version remembered it without its source."""
    if not seen:
        return None
    return seen.get(digest_of(event_id, source)) or seen.get(digest_of(event_id))


def token_digest(token: str) -> str:
    """Return the SHA-256, in hex, as which a remediation token is stored."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def version_key(written: str | None) -> tuple[int, ...] | None:
    """`2`, `v2`, `2.1` as numbers that compare, without zeros at the end; None for what cannot be compared.

    A document or signer without a version counts as version 1, where producers begin.
    """
    if written is None:
        return (1,)
    match = _VERSION.fullmatch(written)
    if match is None:
        return None
    numbers = [int(part) for part in match[1].split(".")]
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def is_newer(version: str | None, than: str | None) -> bool:
    """Tell whether one written version is above another."""
    left, right = version_key(version), version_key(than)
    return version is not None and left is not None and right is not None and left > right


class Draft:
    """The parts of a `Document` as they change. `close()` makes the value to store."""

    def __init__(self, table: Table, document: Document | None) -> None:
        if document is None:
            document = Document(state=table.initial, next=table.order.first)
        if document.state not in table.states:
            raise WorkflowError(
                f"the document is {document.state!r}, which is no state of {table.label}",
                field="state",
                hint=_OTHER_TABLE,
            )
        for name, party in document.parties.items():
            if table.parties is not None and party.state not in table.parties.states:
                raise WorkflowError(
                    f"{name} is {party.state!r}, which is no state of a signer in {table.label}",
                    field="parties.states",
                    hint=_OTHER_TABLE,
                )
        self.table = table
        self.state = document.state
        self.next = document.next
        self.version = document.version
        self.parties = dict(document.parties)
        self.branch = document.branch
        self.branches = {branch.number: branch for branch in document.branches}
        self.seen = {one.digest: one for one in document.seen}
        self.waiting = list(document.waiting)
        self.retried = list(document.retried)
        self.holes = document.holes
        self.stopped = document.stopped
        self.grants = list(document.grants)
        self.words = document.words
        self.last = document.last

    def close(self) -> Document:
        """The document as it is now."""
        return Document(
            state=self.state,
            next=self.next,
            version=self.version,
            parties=self.parties,
            branch=self.branch,
            branches=tuple(self.branches.values()),
            seen=tuple(self.seen.values()),
            waiting=tuple(self.waiting),
            retried=tuple(one for one in self.retried if (one.event.sequence or self.next) >= self.next),
            holes=self.holes,
            stopped=self.stopped,
            grants=tuple(self.grants),
            words=self.words,
            last=self.last,
        )

    def seen_of(self, event: Arrival) -> Seen | None:
        """Find what is remembered of an event."""
        return find_seen(self.seen, event.id, event.source)

    def holds(self, event: Arrival) -> bool:
        """Tell whether this event is waiting, or is the one the document has stopped at."""
        return any(one.event.is_same(event) for one in self.waiting) or (
            self.stopped is not None and self.stopped.is_same(event)
        )

    def remember(
        self, event: Arrival, *, number: int | None, branch: int | None = None, undone: bool = False
    ) -> None:
        """Keep an event's id, the number it took, and its branch; forget the oldest beyond the table's memory."""
        digest = digest_of(event.id, event.source)
        if event.source and self.seen:
            self.seen.pop(digest_of(event.id), None)
        self.seen[digest] = Seen(
            digest, number, self.branch_of(event)[0] if branch is None else branch, undone
        )
        while len(self.seen) > self.table.memory:
            del self.seen[next(iter(self.seen))]

    def has_number(self, number: int) -> bool:
        """Tell whether a remembered or waiting event has this number, or the one the document has stopped at."""
        return (
            any(one.sequence == number for one in self.seen.values())
            or any(one.event.sequence == number for one in self.waiting)
            or (self.stopped is not None and self.stopped.sequence == number)
        )

    def go_on(self) -> Arrival | None:
        """Stand still no longer; the conflict at which the document did, if it did."""
        event, self.stopped = self.stopped, None
        return event

    def keep(self, waiting: Waiting) -> None:
        """Put an early event into the line: numbers in order, then those without by arrival."""
        self.waiting.append(waiting)
        self.waiting.sort(key=lambda one: (one.event.sequence is None, one.event.sequence or 0))

    def come_back(self, event: Arrival) -> Retried | None:
        """Forget that an event is tried again by itself, as it is here; what was kept of it, if it was so."""
        for one in self.retried:
            if one.event.is_same(event):
                self.retried.remove(one)
                return one
        return None

    def branch_of(self, event: Arrival) -> tuple[int, bool]:
        """The branch an event belongs to, and whether its cause says so (else it is the present one)."""
        if event.cause is not None:
            seen = find_seen(self.seen, event.cause, event.source)
            if seen is not None:
                return seen.branch, True
            for branch in self.branches.values():
                if branch.number and branch.opener == event.cause:
                    return branch.number, True
        return self.branch, False

    def has_ended(self, number: int) -> bool:
        """Tell whether a branch was superseded. One that is no longer remembered was."""
        branch = self.branches.get(number)
        return branch is None or branch.ended_by is not None

    def is_within(self, number: int, root: int) -> bool:
        """Tell whether a branch is `root` or grew from it."""
        while number != root:
            branch = self.branches.get(number)
            if branch is None or number == 0:
                return False
            number = branch.parent
        return True

    def has_room(self, *names: str | None) -> bool:
        """Tell whether these signers are known, or can be remembered as well."""
        new = {name for name in names if name is not None and name not in self.parties}
        return not new or len(self.parties) + len(new) <= PARTIES_MAX

    def can_branch(self) -> bool:
        """Tell whether one more branch can be remembered: there is room, or an ended one to forget."""
        return len(self.branches) < BRANCHES_MAX or any(one.ended_by for one in self.branches.values())

    def open_branch(self, event: Arrival, *, supersede: bool) -> int:
        """Begin a branch where the event belongs; with `supersede` that one ends, with all that grew from it."""
        parent, _ = self.branch_of(event)
        number = max(self.branches) + 1
        if supersede:
            for old in [one for one in self.branches if self.is_within(one, parent)]:
                branch = self.branches[old]
                if branch.ended_by is None:
                    self.branches[old] = Branch(old, branch.opener, branch.parent, event.id)
            if self.has_ended(self.branch):
                self.branch = number
        self.branches[number] = Branch(number, event.id, parent)
        if len(self.branches) > BRANCHES_MAX:
            del self.branches[min(one.number for one in self.branches.values() if one.ended_by)]
        return number

    def stand(self, name: str, state: str, *, branch: int | None = None, version: str | None = None) -> None:
        """Put a signer into a state, as of a workflow version; None: the present one."""
        known = self.parties.get(name)
        if branch is None:
            branch = known.branch if known else 0
        self.parties[name] = Party(state, branch, self.version if version is None else version)
