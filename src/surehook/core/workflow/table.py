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
from typing import Any

import msgspec
from msgspec import Struct

from surehook.core.workflow.check import check
from surehook.core.workflow.flow import Flow
from surehook.core.workflow.table_values import TableValues


class Table(TableValues, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """One table. Raises WorkflowError with everything that is wrong with it.

    document_type  what it is for; one table per type
    version        of this table, chosen by its author; recorded with every decision
    precedence     terminal states, strongest first: of two ends the stronger stands. Empty: the first stands
    on_stale       record, or conflict: late events are to be looked at
    on_conflict    record (the first stands, the document goes on), or stop (nothing more moves it until released)
    on_unknown     conflict or informational: types that the table does not name
    memory         events by which repeats are told within the document, 1 to 1024
    """

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
    def data(self) -> dict[str, object]:
        """The table as plain data, defaults written out: what they are may change, what this table does may not."""
        return {key: value for key, value in _plain(self).items() if value not in ({}, [])}

    def name(self, kind: str) -> str:
        """The table's name of a received event type."""
        return self.aliases.get(kind, kind)


def _plain(value: object) -> Any:
    """Structs as mappings without what is None, tuples as lists, whole numbers without a point."""
    if isinstance(value, Struct):
        pairs = ((name, getattr(value, name)) for name in value.__struct_fields__)
        return {name: _plain(one) for name, one in pairs if one is not None}
    if isinstance(value, dict):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return list(value) if isinstance(value, tuple) else value
