"""One flow of states, of a document or of a signer: which states there are, what moves them, what lies before what.

"Late" and "early" are questions of the table, not of clocks. The plain moves (all but those of types that open a
branch) make an order of states: B lies beyond A when a way leads from A to B. An event is *past* when the state lies
beyond where the event leads, and *ahead* when where it leads lies beyond the state. Plain moves therefore may not go round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

Kind = Literal["move", "same", "past", "ahead", "locked", "other"]
# event type → state → next state; the state "*" is any that is not terminal
Moves = Mapping[str, Mapping[str, str]]

ANY = "*"


class Relation(NamedTuple):
    """The relation of an event to a state.

    move    it leads to `target`
    same    the state is where it leads
    past    the state lies beyond that, or is terminal
    ahead   `target` lies beyond the state, but no single move leads there
    locked  `target` could be reached from this terminal state with a newer workflow version or a token
    other   it leads elsewhere: to another end, or where no way leads from here
    """

    kind: Kind
    target: str


class Flow:
    """States and moves, ready to be asked. Nothing is checked here: check.py does that."""

    def __init__(
        self,
        *,
        states: Iterable[str],
        initial: str,
        terminal: Iterable[str],
        moves: Moves,
        remedies: Moves,
        turning: Iterable[str] = (),
    ) -> None:
        self.states = tuple(states)
        self.initial = initial
        self.terminal = frozenset(terminal)
        self.moves = {kind: self._spread(ways) for kind, ways in moves.items()}
        self.remedies = {kind: dict(ways) for kind, ways in remedies.items()}
        plain = {kind: ways for kind, ways in self.moves.items() if kind not in frozenset(turning)}
        self.beyond = reach(self.states, plain)
        # In the order of the states: that of keys is no part of a table.
        self._targets = {
            kind: tuple(state for state in self.states if state in ways.values())
            for kind, ways in self.moves.items()
        }

    def knows(self, kind: str) -> bool:
        """Tell whether an event of this type can move anything here."""
        return kind in self.moves or kind in self.remedies

    def judge(self, state: str, kind: str, *, permitted: bool) -> Relation:
        """Relate an event of type `kind` to `state`. `permitted`: it may leave a terminal state as `remedies` say."""
        targets = self._targets.get(kind, ())
        if state in self.terminal:
            remedy = self.remedies.get(kind, {}).get(state)
            if remedy is not None:
                return Relation("move" if permitted else "locked", remedy)
            if state in targets:
                return Relation("same", state)
            ends = [target for target in targets if target in self.terminal]
            return (
                Relation("other", ends[0]) if ends and len(ends) == len(targets) else Relation("past", state)
            )
        target = self.moves.get(kind, {}).get(state)
        if target is not None and target != state:
            return Relation("move", target)
        if state in targets:
            return Relation("same", state)
        if any(state in self.beyond[target] for target in targets):
            return Relation("past", state)
        ahead = [target for target in targets if target in self.beyond[state]]
        if ahead:
            # Of several the nearest: the one that the others lie beyond.
            return Relation("ahead", max(ahead, key=lambda one: len(self.beyond[one])))
        return Relation("other", targets[0] if targets else state)

    def _spread(self, ways: Mapping[str, str]) -> dict[str, str]:
        """The ways of one type with `*` written out: every state that is not terminal and is not where it leads."""
        spread = dict(ways)
        target = spread.pop(ANY, None)
        if target is not None:
            for state in self.states:
                if state not in self.terminal and state != target:
                    spread.setdefault(state, target)
        return spread


def reach(states: Iterable[str], moves: Moves) -> dict[str, frozenset[str]]:
    """For every state those that lie beyond it: all to which moves lead, itself not counted unless they go round."""
    near: dict[str, set[str]] = {state: set() for state in states}
    for ways in moves.values():
        for state, target in ways.items():
            if state != target:
                near.setdefault(state, set()).add(target)
                near.setdefault(target, set())
    return {state: _reached(near, state) for state in near}


def _reached(near: Mapping[str, set[str]], state: str) -> frozenset[str]:
    found: set[str] = set()
    todo = list(near[state])
    while todo:
        one = todo.pop()
        if one not in found:
            found.add(one)
            todo.extend(near[one])
    return frozenset(found)
