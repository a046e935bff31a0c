"""The transition table of a document type: data, checked when it is made, the same for every service that has it.

states, initial, terminal    what a document can be
moves                        event type → state → next state; "*" is any state that is not terminal
informational                types that are recorded and move nothing
remedies                     the only ways out of terminal states: with a newer workflow version or a token
branches                     types after which the workflow goes another way, see BRANCH_RULES
parties                      a smaller table of the same kind for each signer, or none
rejected                     event type → state → next state: when an event that moved the document is rejected afterwards
order                        strict, buffer or free, with its bounds
precedence, on_stale, on_conflict, on_unknown    what happens when events contradict
aliases                      other names of types: received name → name in this table
fields                       where a message says what the table needs to know
"""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import Struct, structs

from surehook.core.workflow.check import check
from surehook.core.workflow.flow import Flow

Ways = dict[str, dict[str, str]]

# Branches that a document remembers; a workflow that turned more often is looked at by people.
BRANCHES_MAX = 32
# Senders that repeat do so for about as long; what has not come by then was never sent.
STRICT_WAIT_S = 3 * 86_400
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
    count   most events that wait for one document, 1 to 256 (they are stored with it)
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


class Parties(Struct, frozen=True, forbid_unknown_fields=True):
    """What each signer goes through; as in the table itself. `replaced` is the state of a party that was replaced."""

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
    """Where a message says what the table needs: dotted paths into its body (`data.signer.id`); None: nowhere."""

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


class Table(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One table. Raises WorkflowError with everything that is wrong with it.

    document_type  what it is for; one table per type
    version        of this table, chosen by its author; recorded with every decision
    precedence     terminal states, strongest first: of two ends the stronger stands. Empty: the first stands
    on_stale       record, or conflict: late events are to be looked at
    on_conflict    record (the first stands, the document goes on), or stop (nothing more moves it until released)
    on_unknown     conflict or informational: types that the table does not name
    memory         events by which repeats are told within the document, 1 to 1024
    """

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

    def __post_init__(self) -> None:
        check(self)

    @cached_property
    def flow(self) -> Flow:
        """The document's states and moves."""
        return Flow(
            states=self.states,
            initial=self.initial,
            terminal=self.terminal,
            moves=self.moves,
            remedies=self.remedies,
            turning=self.branches,
        )

    @cached_property
    def party_flow(self) -> Flow | None:
        """The signer's states and moves."""
        return None if self.parties is None else self.parties.flow()

    @cached_property
    def types(self) -> frozenset[str]:
        """Every event type that the table names, aliases left out."""
        inner = self.parties.moves.keys() | self.parties.remedies.keys() if self.parties else set()
        return frozenset(
            {*self.moves, *self.remedies, *self.informational, *self.branches, *inner},
        )

    @cached_property
    def moving(self) -> frozenset[str]:
        """Every received event type by which something may move, aliases among them."""
        names = self.types - {*self.informational}
        return names | {alias for alias, name in self.aliases.items() if name in names}

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the table as data, whatever the order of its keys: equal digests decide alike."""
        return hashlib.sha256(msgspec.json.encode(self.data, order="deterministic")).hexdigest()

    @cached_property
    def label(self) -> str:
        """`signing 1 3f2a90cc01de`: type, version and the beginning of the digest."""
        return f"{self.document_type} {self.version} {self.digest[:12]}"

    @property
    def data(self) -> dict[str, Any]:
        """The table as plain data, defaults written out: what they are may change, what this table does may not."""
        return {key: value for key, value in _plain(self).items() if value not in ({}, [])}

    def name(self, kind: str) -> str:
        """The table's name of a received event type."""
        return self.aliases.get(kind, kind)


def _plain(value: Any) -> Any:
    """Structs as mappings without what is None, tuples as lists, whole numbers without a point."""
    if isinstance(value, Struct):
        pairs = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: _plain(one) for name, one in pairs if one is not None}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return list(value) if isinstance(value, tuple) else value
