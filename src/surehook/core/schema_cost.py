"""What a schema costs for a given payload, counted before the engine begins: it cannot be interrupted.

The engine holds the interpreter until it is done: no thread, no timer and no signal gets a word in. So nobody asks it what
would take long. The count follows the payload once. At each value stand the schemas that are applied to it, and how often:
references that multiply are multiplied, not followed. Such a set is made once, and so is the step from it to the set at
a key or an item; that a set of schemas is met a thousand times costs a thousand steps, however large it is.

The count is an upper bound in steps of about 2.5 ns: nothing is taken to fail early. Small payloads are not walked: the
whole schema, written out, times the payload's size is a bound as well.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Any

from msgspec import Struct

from surehook.core import limits
from surehook.core.schema_parts import HUGE, LONG, MULTIPLE, UNEVALUATED, Node, Reader, TooMuch, has_long

CAP = 1 << 50  # counts are cut here: what is above is far above every bound
BUILD = 250  # steps: one schema of a set that is met for the first time
REPEATED = 4  # how often the schemas beside `unevaluated…` are gone through
LIGHT = limits.SCHEMA_STEPS // 100  # steps: not worth a walk
KEPT = 20_000  # schemas in all sets that are kept between payloads
PLAIN = 1e15

Count = dict[tuple[int, bool], int]  # how often each schema is applied; True: within an alternative


class State:
    """Schemas that are applied to one value."""

    __slots__ = (
        "compound", "contains", "errors", "huge", "items", "key_text", "keys", "known", "multiple", "nodes", "prefix",
        "steps", "text", "tokens", "unevaluated", "unique",
    )  # fmt: skip

    def __init__(self, count: Count, nodes: list[Node]) -> None:
        self.nodes = count
        self.steps = self.text = self.key_text = self.compound = self.contains = self.unique = 0
        self.multiple = self.huge = self.tokens = self.unevaluated = self.errors = self.prefix = 0
        self.known: set[str] = set()
        self.keys: dict[str | None, State] = {}
        self.items: dict[int, State] = {}
        for (number, within), times in count.items():
            node = nodes[number]
            self.steps += times * node.steps
            self.text += times * node.text
            self.tokens += times * node.tokens
            self.key_text += times * node.key_text
            self.compound += times * node.compound
            self.contains += times * node.contains
            self.unique += times * node.unique
            if node.multiple is not None:
                self.multiple += times
                self.huge += times * (not 1e-9 <= abs(node.multiple) <= PLAIN)
            if node.unevaluated:
                self.unevaluated += times
            if within:
                self.errors += times * node.error
            self.known.update(node.properties)
            self.prefix = max(self.prefix, len(node.prefix))


class Cost(Struct, gc=False):
    steps: int  # to say yes or no
    errors: int  # … and to say why not


class Counter:
    """Counts for one schema. Raises TooMuch for one that applies itself to the same value."""

    def __init__(self, document: Any) -> None:
        self._nodes = Reader(document).nodes
        self._built = 0
        self._order = self._sorted()
        self._start = self._closed({(0, False): 1})
        self._whole = self._written_out()

    @property
    def least(self) -> int:
        """Steps for the smallest payload."""
        return self._start.steps + BUILD * len(self._start.nodes)

    def is_light(self, data: bytes) -> bool:
        """Whether no payload of this size costs more than some hundred microseconds, by a glance at it."""
        if self._whole is None:
            return False
        steps, text, square = self._whole
        values = 1 + data.count(b",") + data.count(b"[") + data.count(b"{")
        return steps * values + text * len(data) + square * values * values <= LIGHT

    def count(self, data: Any, most: int = limits.SCHEMA_STEPS) -> Cost:
        """For this payload. Ends early where the steps pass `most`."""
        if self._built > KEPT:
            self._built = 0
            self._start = self._closed({(0, False): 1})
        steps = errors = 0
        met: set[int] = set()
        waiting: list[tuple[Any, State]] = [(data, self._start)]
        while waiting and steps <= most:
            value, state = waiting.pop()
            if id(state) not in met:
                met.add(id(state))
                steps += BUILD * len(state.nodes)
            steps += state.steps
            errors += state.errors
            kind = type(value)
            if kind is str:
                if state.text:
                    size = len(value) if value.isascii() else 4 * len(value)
                    steps += size * min(state.text, state.tokens * size)
            elif kind is dict:
                steps += state.compound
                if state.unevaluated:
                    steps += UNEVALUATED * state.unevaluated * len(value) * len(state.nodes)
                for key, inner in value.items():
                    if state.key_text:
                        steps += state.key_text * (len(key) if key.isascii() else 4 * len(key))
                    waiting.append((inner, self._at_key(state, key if key in state.known else None)))
            elif kind is list:
                steps += state.compound + state.contains * len(value)
                if state.unevaluated:
                    steps += UNEVALUATED * state.unevaluated * len(value) * len(state.nodes)
                if state.unique:
                    steps += state.unique * (16 * len(value))
                    if has_long(value):
                        steps += state.unique * LONG * len(value) * len(value)
                for place, inner in enumerate(value):
                    waiting.append((inner, self._at_item(state, min(place, state.prefix))))
            elif state.multiple and kind is not bool and value is not None:
                plain = -PLAIN <= value <= PLAIN
                steps += HUGE * (state.huge if plain else state.multiple) + MULTIPLE * state.multiple
        return Cost(steps, steps + REPEATED * steps + errors)

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
        """With all that these apply to the same value."""
        order, nodes = self._order, self._nodes
        count = dict(count)
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

    def _sorted(self) -> list[int]:
        """For each schema its rank: above all that it applies to the same value."""
        order = [-1] * len(self._nodes)
        rank = len(self._nodes)
        begun: set[int] = set()
        for first in range(len(self._nodes)):
            if order[first] >= 0:
                continue
            path = [(first, iter(self._nodes[first].same))]
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
                    path.append((inner[0], iter(self._nodes[inner[0]].same)))
        return order

    def _written_out(self) -> tuple[int, int, int] | None:
        """Steps for each value, each character, and each pair of values, of all schemas with their references written
        out. None: they have no end."""
        found: dict[int, tuple[int, int, int]] = {}
        begun = {0}
        path = [(0, iter(self._inner(0)))]
        while path:
            number, rest = path[-1]
            inner = next(rest, None)
            if inner is not None:
                if inner in begun:
                    return None
                if inner not in found:
                    begun.add(inner)
                    path.append((inner, iter(self._inner(inner))))
                continue
            node = self._nodes[number]
            steps = node.steps + node.compound + node.contains + 16 * node.unique
            steps += 0 if node.multiple is None else HUGE + MULTIPLE
            text, square = node.text + node.key_text, LONG * node.unique
            for each in self._inner(number):
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

    def _inner(self, number: int) -> list[int]:
        node = self._nodes[number]
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
