"""The fields of a transition table: plain values, of which `check` says what is wrong with them, and which `Table` is made of."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from msgspec import Struct, structs

from surehook.core.workflow.flow import Flow

Ways = dict[str, dict[str, str]]

# Branches that a document remembers; a workflow that turned more often is looked at by people.
BRANCHES_MAX = 32
PARTIES_MAX = 1_000  # of a document, which is read and written whole with each event
# Senders that repeat do so for about as long; what has not come by then was never sent.
STRICT_WAIT_S = 3 * 86_400
AGAIN_MS = (1_000, 60_000)  # least and most, by when an event is handed in again for which there was no room
MEMORY = 64  # events that a document remembers by default: a few workflows' worth, 3 KiB

BranchRule = Literal["supersede", "beside", "replace"]
# supersede   the branch that the event belongs to ends: what was caused within it and comes later is stale
# beside      a branch begins beside the others, which go on (an approval step was inserted)
# replace     one party takes another's place: the older branch goes on without the party that went


class Order(Struct, frozen=True, forbid_unknown_fields=True):
    """In which order events take effect.

    mode    strict: by sequence number, no gap, no advance. buffer: the same, but a gap may be given up, and events without
            number wait until the table has a move for them. free: as they come, forward only
    first   the sequence number of a document's first event
    count   most events that wait for one document, 1 to 256 (they are stored with it): those with the lowest numbers. The
            others are handed back; what has come is never given up for want of room
    wait_s  longest wait of an event for what is missing before it, seconds; `strict` without it: three days
    then    what happens after that. refuse (the waiting event is a conflict, and can be handed in again); of `buffer` also
            skip (give up the missing numbers and go on); of `strict` also wait (for ever; without `wait_s`)
    jump    a number further ahead than this is a producer's mistake and a conflict
    """

    mode: Literal["strict", "buffer", "free"] = "strict"
    first: int = 1
    count: int = 64
    wait_s: float | None = None
    then: Literal["skip", "refuse", "wait"] | None = None
    jump: int = 10_000

    def __post_init__(self) -> None:
        # Written out, so that it is part of the table's digest.
        if self.mode == "strict" and self.then is None:
            structs.force_setattr(self, "then", "refuse")
            if self.wait_s is None:
                structs.force_setattr(self, "wait_s", STRICT_WAIT_S)

    @property
    def skips(self) -> bool:
        """Tell whether missing numbers are given up after the wait; else what waited for them is refused, or waits on."""
        return self.then == "skip"

    @property
    def again_ms(self) -> int:
        """By when an event is handed in again for which there was no room, milliseconds: before a wait for it could end."""
        least, most = AGAIN_MS
        return most if self.wait_s is None else max(least, min(most, round(self.wait_s * 500)))


class Parties(Struct, frozen=True, forbid_unknown_fields=True):
    """The states and moves of each signer; as in the table itself. `replaced` is the state of a party that was replaced."""

    states: tuple[str, ...]
    initial: str
    terminal: tuple[str, ...]
    moves: Ways
    remedies: Ways = {}
    replaced: str | None = None

    def flow(self) -> Flow:
        return Flow(
            states=self.states,
            initial=self.initial,
            terminal=self.terminal,
            moves=self.moves,
            remedies=self.remedies,
        )


class Fields(Struct, frozen=True, forbid_unknown_fields=True):
    """Dotted paths into a message's body (`data.signer.id`) at which the table finds what it needs; None: nowhere."""

    document: str
    sequence: str | None = None
    version: str | None = None
    cause: str | None = None
    party: str | None = None
    replaces: str | None = None
    token: str | None = None


# What surehook itself sends; signer, who is replaced, and token are the publisher's data.
SUREHOOK = Fields(
    document="subject",
    sequence="sequence",
    version="workflow_version",
    cause="causation_id",
    party="data.signer",
    replaces="data.replaces",
    token="data.remediation_token",  # noqa: S106
)


class TableValues(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The fields of `Table`, which describes them, before they are checked."""

    document_type: str
    version: str = "1"
    states: tuple[str, ...]
    initial: str
    terminal: tuple[str, ...]
    moves: Ways
    informational: tuple[str, ...] = ()
    remedies: Ways = {}
    branches: dict[str, BranchRule] = {}
    rejected: Ways = {}
    parties: Parties | None = None
    order: Order = Order()
    precedence: tuple[str, ...] = ()
    on_stale: Literal["record", "conflict"] = "record"
    on_conflict: Literal["record", "stop"] = "record"
    on_unknown: Literal["conflict", "informational"] = "conflict"
    aliases: dict[str, str] = {}
    memory: int = MEMORY
    fields: Fields = SUREHOOK

    @cached_property
    def types(self) -> frozenset[str]:
        """Every event type that the table names, aliases left out."""
        inner = self.parties.moves.keys() | self.parties.remedies.keys() if self.parties else set()
        return frozenset(
            {*self.moves, *self.remedies, *self.informational, *self.branches, *inner},
        )
