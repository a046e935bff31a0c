"""The values that a document's workflow decides from and those it decides: arrival, document, step, decision.

All are small values. None can lead back to itself, so the garbage collector need not look at them (`gc=False`). A `Document`
and a `Step` are stored by whoever calls; `msgspec.to_builtins` and `msgspec.convert` (or its JSON twins) carry both there and
back.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Verdict = Literal["applied", "duplicate", "stale", "early", "conflict", "informational", "no_op"]
VERDICTS: tuple[Verdict, ...] = (
    "applied", "duplicate", "stale", "early", "conflict", "informational", "no_op"
)  # fmt: skip


# The rules by which a verdict comes about, as words for machines.
RULES: dict[str, str] = {
    "move": "the table has a move from here",
    "signer": "a signer moves, the document stays",
    "branch": "the workflow goes another way from here",
    "remedy": "a newer workflow version or a token leads out of a terminal state",
    "leap": "in `free` order, or where numbers were given up, a move may pass over states",
    "precedence": "of two ends the stronger stands",
    "informational": "the type is recorded and moves nothing",
    "there_already": "it leads to where the document, or the signer, stands",
    "repeat": "an event with this id was handed in before",
    "past": "the state lies beyond where it leads",
    "terminal": "a terminal state is not left by late events",
    "older_version": "it belongs to an older workflow version",
    "ended_branch": "it was caused in a branch that has ended",
    "replaced": "it was caused before the signer's present standing began",
    "settled_number": "its number was given up, or settled too long ago to be remembered by whom",
    "gap": "a number before it is missing",
    "not_yet": "the document is not yet where it leads from",
    "stopped": "the document stands still at a conflict",
    "line_full": "too many events wait for this document",
    "same_number": "another event has its number",
    "before_first": "its number lies before that of a document's first event",
    "jump": "its number is too far ahead",
    "no_number": "strict order needs a number, and it has none",
    "flaw": "something of it could not be read",
    "unknown_type": "the table does not name its type",
    "contradiction": "it leads elsewhere than the state that stands",
    "unproven": "states between here and there have not been seen",
    "locked": "only a newer workflow version or a token leads out of this state",
    "too_many_branches": "the workflow has more branches at once than are remembered",
    "too_many_parties": "the document has more signers than are remembered",
    "waited_too_long": "what it waited for did not come in time",
    "gave_up": "numbers that did not come were given up",
    "released": "an operator let the document go on",
    "granted": "an operator granted a remediation token",
    "undone": "an event that had moved the document was rejected afterwards, and its move taken back",
    "not_undone": "it was rejected afterwards, and the table does not say where the document goes from here",
}


class Arrival(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The part of an event that the table looks at. No times: nothing is ever ordered by them.

    id            by which repeats are told, among events of one source
    source        whose ids these are, where several senders' events are about one document; "" where there is one
    type          as received; the table's aliases are applied to it
    sequence      its number within the document, counted by the producer; None where there is none
    version       workflow version, `2`, `v2`, `2.1`; None: that of the document
    cause         id of the event that caused it (causation id), or None
    party         whose act it is (signer), or None
    replaces      of an event by which one party takes another's place: the party that goes
    token         remediation token, or None
    remediated    the caller has found the token to be valid by means of its own
    flaw          what could not be read of it, a sentence; such an event is a conflict
    """

    id: str
    type: str
    sequence: int | None = None
    version: str | None = None
    cause: str | None = None
    party: str | None = None
    replaces: str | None = None
    token: str | None = None
    remediated: bool = False
    flaw: str | None = None
    source: str = ""

    def is_same(self, other: Arrival) -> bool:
        """True if both are the same event. One kept without its source is of any: it was kept by an older version."""
        return self.id == other.id and (self.source == other.source or not (self.source and other.source))


class Waiting(Struct, frozen=True, omit_defaults=True, gc=False):
    """An event that came early.

    since   when it was first handed in (Unix milliseconds)
    until   its wait was ended once, and it waits for what was tried again just then: until then, as long as anything is
    """

    event: Arrival
    since: int
    until: int = 0


class Retried(Struct, frozen=True, omit_defaults=True, gc=False):
    """An event that has left the queue, or failed as its turn came, and is tried again by itself.

    since     when it was first handed in (Unix milliseconds): if it has to wait once more, it has waited since then
    at        when it left; equal if it never waited
    back_at   when it is back at the latest: from then on, what stands behind it waits as for any event that is missing
    released  its wait was ended, or an operator let it go on: it need not wait once more
    passed    the instant up to which time was let pass as its wait was ended; 0: that of its coming back
    said_at   when an operator let it go on: it does not wait for what had left before that
    line_full  there was no room for it: nothing passes it over, a release neither
    """

    event: Arrival
    since: int
    at: int
    back_at: int
    released: bool = False
    line_full: bool = False
    passed: int = 0
    said_at: int = 0

    @property
    def has_waited(self) -> bool:
        """Tell whether it stood in the queue."""
        return self.since < self.at


class Party(Struct, frozen=True, omit_defaults=True, gc=False):
    """The standing of one signer, and the branch and workflow version in which it began."""

    state: str
    branch: int = 0
    version: str | None = None


class Branch(Struct, frozen=True, omit_defaults=True, gc=False):
    """A way the workflow took. Number 0, the trunk, is always there.

    `opener` is the id of the event that opened it, `parent` the branch which that belonged to, `ended_by` the id of
    the event that superseded it.
    """

    number: int
    opener: str
    parent: int
    ended_by: str | None = None


class Seen(Struct, frozen=True, omit_defaults=True, array_like=True, gc=False):
    """One remembered event: the digest of its id, the number it took (None: none), its branch, and whether it is without
    effect although it may have one when it is replayed: its move was taken back, or the table could not read it."""

    digest: str
    sequence: int | None = None
    branch: int = 0
    undone: bool = False


class OperatorCommand(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An operator's command for a document, until the next decision carries it out.

    what   release: let it go on. undo: take back what `step` did, as its event was rejected
    at     when it was said, Unix milliseconds
    by     who said it
    why    the reason that was given
    event  of a release: id of the first event that waited then, if any did
    source of a release: that event's
    upto   of a release: its number; those before it are given up, and no further ones, also where the event's handler fails
    tries  of an undo: attempts at it (undo_attempts.py)
    tried_at  of an undo: when the last attempt began, while nothing is known of its outcome; else None
    """

    what: Literal["release", "undo"]
    at: int
    by: str = ""
    why: str = ""
    event: str | None = None
    source: str = ""
    upto: int | None = None
    tries: int = 0
    tried_at: int | None = None
    step: Step | None = None


class Document(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The stored state of one document. A document that was never heard of is None.

    state        of the table
    next         sequence number that comes next; all before it are settled
    version      workflow version of the last move that named one
    parties      where each signer stands
    branch       number of the branch that events without a cause belong to
    branches     those that are remembered, at most `BRANCHES_MAX`
    seen         the latest events, at most the table's `memory`, oldest first
    waiting      events that came early: those with a number by it, then those without by arrival
    retried      events that are tried again by themselves, at most twice the table's `count` with a number, and as many without
    holes        numbers were given up, and the state may be behind for it
    stopped      the conflict at which the document stands still (`on_conflict: stop`), or None
    grants       SHA-256 (hex) of remediation tokens that were granted and not yet used
    words        what people said and no decision has carried out yet
    last         digest of the event that took effect last; "" where that is not known
    """

    state: str
    next: int = 1
    version: str | None = None
    parties: dict[str, Party] = {}
    branch: int = 0
    branches: tuple[Branch, ...] = (Branch(0, "", 0),)
    seen: tuple[Seen, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    retried: tuple[Retried, ...] = ()
    holes: bool = False
    stopped: Arrival | None = None
    grants: tuple[str, ...] = ()
    words: tuple[OperatorCommand, ...] = ()
    last: str = ""


class Step(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The outcome of one event and its reason, as a journal keeps it and `explain` shows it.

    at          when it was decided, Unix milliseconds
    table       document type, version and digest of the table that decided: `signing 1 3f2a…`
    event       id; "" for what no event did (a wait that was over, an operator's release)
    source      of the event, as in its arrival
    before, after   state of the document; equal where nothing moved
    party, party_before, party_after   the same of the signer, where the event is a signer's act
    rule        stable word of the rule that decided, one of RULES
    reason      one sentence for people
    waits_for   of an early event: the sequence number that is missing, or None
    released    it had come early and has its turn now
    by          who said so, where a person did
    version_before, party_version_before   workflow version in which the document, and the signer, stood before
    """

    at: int
    table: str
    event: str
    type: str
    verdict: Verdict
    before: str
    after: str
    rule: str
    reason: str
    sequence: int | None = None
    version: str | None = None
    cause: str | None = None
    party: str | None = None
    party_before: str | None = None
    party_after: str | None = None
    waits_for: int | None = None
    released: bool = False
    by: str | None = None
    source: str = ""
    version_before: str | None = None
    party_version_before: str | None = None

    @property
    def is_move(self) -> bool:
        """True if a handler should hear of the change: of the document, a signer, a branch. A move taken back on
        a person's word is none: no event did it."""
        return self.verdict == "applied" and self.rule != "undone"

    @property
    def is_taking_back(self) -> bool:
        """True if the step reports on taking back the move of a rejected event: that is no turn of the event."""
        return self.rule in ("undone", "not_undone")


class Decision(Struct, frozen=True, kw_only=True, gc=False):
    """The consequences of an arrival.

    document  to be stored in the same transaction that stores the steps
    steps     in order. Beside the event's own: those of events that waited and have their turn now (call the handlers
              of their rows as well, if `is_move`), and of sequence numbers given up
    own       the step of the event that was handed in; None when only time passed
    wake_at   call `decide` with no event at that instant (Unix milliseconds), or None. Late is as good as punctual:
              it may be over already, where the event had a document go on that stood still
    """

    document: Document
    steps: tuple[Step, ...]
    own: Step | None = None
    wake_at: int | None = None

    @property
    def handed_back(self) -> tuple[Step, ...]:
        """Steps of events for which there was no room, or is none any more since one came that is before them. They were not
        kept: hand each in again within `Order.again_ms`."""
        return tuple(step for step in self.steps if step.rule == "line_full")

    @property
    def again(self) -> bool:
        """Tell whether the event that was handed in is among those."""
        return self.own is not None and self.own.rule == "line_full"

    @property
    def verdict(self) -> Verdict | None:
        return None if self.own is None else self.own.verdict

    @property
    def released(self) -> tuple[Step, ...]:
        """Steps of events that had come early and have left the line."""
        return tuple(step for step in self.steps if step.released)
