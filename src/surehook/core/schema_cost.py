"""Cost of a schema for a given payload, counted before the engine begins, since it cannot be interrupted.

The engine holds the interpreter until it is done: no thread, timer or signal runs meanwhile. So it is not asked where it
would take long. The count goes through the payload once, level by level (`schema_walk.py`). Each value has a set of
schemas that are applied to it, and how often: references that multiply are multiplied, not followed. Such a set is made
once, and so is the step from it to the set at a key or an item; a set that is met a thousand times costs a thousand
steps, however large it is.

The count is an upper bound in steps of about 2.5 ns: it assumes that nothing fails early, and includes the walk itself.
Small payloads are not walked: the whole schema, written out, times the payload's size is an upper bound too.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from msgspec import Struct

from surehook.core import limits
from surehook.core.schema_parts import HUGE, LONG, MULTIPLE, UNEVALUATED, SchemaNode, SchemaReader, TooMuch
from surehook.core.schema_sets import Count, State
from surehook.core.schema_walk import SchemaWalk
from surehook.core.steps import Steps

CAP = 1 << 50  # counts are capped here, far above every bound
BUILD = 250  # steps: one schema of a set that is met for the first time
MADE = 1_500  # … and the set
REPEATED = 4  # how often the schemas beside `unevaluated…` are gone through
LIGHT = limits.SCHEMA_STEPS // 100  # steps; below this a walk is not worth it
KEPT = 20_000  # schemas in all sets that are kept between payloads
INNER_COST = 512  # of adding up one schema (core/steps.py)


class Cost(Struct, gc=False):
    steps: int  # to say yes or no
    errors: int  # … and to say why not
    own: int  # of counting itself


class Counter:
    """Counts for one schema. Made by `counting`."""

    def __init__(self, nodes: list[SchemaNode], order: list[int], whole: tuple[int, int, int] | None) -> None:
        self._nodes = nodes
        self._built = 0
        self._order = order
        self._sets: dict[frozenset[tuple[tuple[int, bool], int]], State] = {}
        self._start = self._closed({(0, False): 1})
        self._whole = whole

    @property
    def least(self) -> int:
        """Steps for the smallest payload."""
        return self._start.steps + BUILD * len(self._start.nodes)

    def weight(self, data: bytes) -> int:
        """Upper bound of the steps for this payload, from counts of its bytes alone."""
        if self._whole is None:
            return CAP
        steps, text, square = self._whole
        values = 1 + data.count(b",") + data.count(b"[") + data.count(b"{")
        return min(CAP, steps * values + text * len(data) + square * values * values)

    def count(self, data: object, most: int = limits.SCHEMA_STEPS, *, has_long: bool = True) -> Cost:
        """Count for this payload; ends early where the steps pass `most`. `has_long`: it may have a number that fits in no
        64 bits."""
        if self._built > KEPT:
            self._built = 0
            self._sets.clear()
            self._start = self._closed({(0, False): 1})
        walk = SchemaWalk(self._at_key, self._at_item, has_long=has_long)
        met: set[State] = set()
        level = {self._start: [data]}
        while level and walk.steps + walk.own <= most:
            for state, values in level.items():
                if state not in met:
                    met.add(state)
                    walk.steps += BUILD * len(state.nodes)
                    walk.own += MADE
                walk.step(state, values)
                if walk.steps + walk.own > most:
                    break
            level, walk.below = walk.below, {}
        return Cost(walk.steps, walk.steps + REPEATED * walk.steps + walk.errors, walk.own)

    # -- sets of schemas -----------------------------------------------------------------------------------

    def _at_key(self, state: State, key: str | None) -> State:
        found = state.keys.get(key)
        if found is None:
            count: Count = {}
            for (number, within), times in state.nodes.items():
                node = self._nodes[number]
                named = node.properties.get(key) if key is not None else None
                for inner in node.each_key:
                    _add(count, inner, within, times)
                if named is not None:
                    _add(count, named, within, times)
                else:
                    for inner in node.additional:
                        _add(count, inner, within, times)
            found = state.keys[key] = self._closed(count)
        return found

    def _at_item(self, state: State, place: int) -> State:
        found = state.items.get(place)
        if found is None:
            count: Count = {}
            for (number, within), times in state.nodes.items():
                node = self._nodes[number]
                for inner in node.each_item:
                    _add(count, inner, within, times)
                if place < len(node.prefix):
                    _add(count, node.prefix[place], within, times)
            found = state.items[place] = self._closed(count)
        return found

    def _closed(self, count: Count) -> State:
        """The set with all schemas that these apply to the same value. Equal sets are one object."""
        key = frozenset(count.items())
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = self._made(dict(count))
        return found

    def _made(self, count: Count) -> State:
        order, nodes = self._order, self._nodes
        heap = [(order[number], number, within) for number, within in count]
        heapify(heap)
        while heap:
            _, number, within = heappop(heap)
            times = count[number, within]
            node = nodes[number]
            if node.unevaluated:
                times *= REPEATED
            for inner, is_alternative in node.same:
                deep = within or is_alternative
                if (inner, deep) not in count:
                    heappush(heap, (order[inner], inner, deep))
                _add(count, inner, deep, times)
        self._built += len(count)
        return State(count, nodes)


def counting(document: object) -> Steps[Counter]:
    """A counter for a schema. Raises TooMuch for one that applies itself to the same value."""
    nodes = yield from SchemaReader().read(document)
    order = _sorted(nodes)
    whole = yield from _written_out(nodes)
    return Counter(nodes, order, whole)


def _sorted(nodes: list[SchemaNode]) -> list[int]:
    """Rank of each schema: above all that it applies to the same value."""
    order = [-1] * len(nodes)
    rank = len(nodes)
    begun: set[int] = set()
    for first in range(len(nodes)):
        if order[first] >= 0:
            continue
        path = [(first, iter(nodes[first].same))]
        begun.add(first)
        while path:
            number, rest = path[-1]
            inner = next(rest, None)
            if inner is None:
                rank -= 1
                order[number] = rank
                begun.discard(number)
                path.pop()
            elif order[inner[0]] < 0:
                if inner[0] in begun:
                    raise TooMuch("a reference leads back to itself for the same value, without end")
                begun.add(inner[0])
                path.append((inner[0], iter(nodes[inner[0]].same)))
    return order


def _written_out(nodes: list[SchemaNode]) -> Steps[tuple[int, int, int] | None]:
    """Steps for each value, each character, and each pair of values, of all schemas with their references written
    out. None: they have no end."""
    found: dict[int, tuple[int, int, int]] = {}
    begun = {0}
    path = [(0, iter(_inner(nodes, 0)))]
    while path:
        number, rest = path[-1]
        inner = next(rest, None)
        if inner is not None:
            if inner in begun:
                return None
            if inner not in found:
                begun.add(inner)
                path.append((inner, iter(_inner(nodes, inner))))
            continue
        yield INNER_COST
        node = nodes[number]
        steps = node.steps + node.compound + node.contains + 16 * node.unique
        steps += 0 if node.multiple is None else HUGE + MULTIPLE
        text, square = node.text + node.key_text, LONG * node.unique
        for each in _inner(nodes, number):
            more = found[each]
            steps, text, square = steps + more[0], text + more[1], square + more[2]
        if node.unevaluated:
            steps, text, square = (
                REPEATED * steps,
                REPEATED * text,
                REPEATED * square + UNEVALUATED * steps,
            )
        found[number] = min(steps, CAP), min(text, CAP), min(square, CAP)
        begun.discard(number)
        path.pop()
    return found[0]


def _inner(nodes: list[SchemaNode], number: int) -> list[int]:
    node = nodes[number]
    same = [inner for inner, _ in node.same]
    return [
        *same,
        *node.properties.values(),
        *node.additional,
        *node.each_key,
        *node.prefix,
        *node.each_item,
    ]


def _add(count: Count, number: int, within: bool, times: int) -> None:
    key = number, within
    count[key] = min(count.get(key, 0) + times, CAP)
