"""Walks a payload through sets of schemas: values of one level that have the same set go through it together.

So most of the work is done by functions that take a whole list. Its own cost is counted too, since it holds the
interpreter like the engine does.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable
from itertools import chain
from typing import Any

from surehook.core.schema_parts import HUGE, LONG, MULTIPLE, UNEVALUATED, inside, is_long
from surehook.core.schema_sets import PLAIN, State

# Costs of this walk, in steps of 2.5 ns: a set of schemas at one level, a value that is passed on, one that is looked at (a
# key, an object, a number, a text), and one that is searched for long numbers.
GROUP, VALUE, LOOK, LOOK_INTO = 600, 16, 32, 48

AtKey = Callable[[State, str | None], State]
AtItem = Callable[[State, int], State]


class SchemaWalk:
    """`steps`: of the engine, to say yes or no. `errors`: … to say why not. `own`: of this walk.

    `has_long`: False where the payload is known to have no number that fits in no 64 bits.
    """

    def __init__(self, at_key: AtKey, at_item: AtItem, *, has_long: bool) -> None:
        self.steps = self.errors = self.own = 0
        self.below: dict[State, list[object]] = {}  # the next level
        self._at_key = at_key
        self._at_item = at_item
        self._has_long = has_long

    def step(self, state: State, values: list[Any]) -> None:
        """Count values of one level to which the same schemas are applied."""
        count = len(values)
        self.steps += state.steps * count
        self.errors += state.errors * count
        kinds = set(map(type, values))
        self.own += GROUP + VALUE * count * min(3, len(kinds))
        if dict in kinds:
            self._objects(state, _of(dict, values, kinds))
        if list in kinds:
            self._lists(state, _of(list, values, kinds))
        if state.text and str in kinds:
            self._texts(state, _of(str, values, kinds))
        if state.multiple and not kinds.isdisjoint((int, float)):
            self._numbers(state, [value for value in values if type(value) in (int, float)])

    def _texts(self, state: State, texts: list[str]) -> None:
        self.own += LOOK * len(texts)
        for size, times in Tally(map(_size, texts)).items():
            self.steps += times * size * min(state.text, state.tokens * size)

    def _numbers(self, state: State, numbers: list[float]) -> None:
        self.own += 2 * LOOK * len(numbers)
        plain = sum(-PLAIN <= number <= PLAIN for number in numbers)
        exact = plain * state.huge + (len(numbers) - plain) * state.multiple
        self.steps += HUGE * exact + MULTIPLE * state.multiple * len(numbers)

    def _objects(self, state: State, objects: list[dict[str, object]]) -> None:
        keys = self._compound(state, objects)
        if not keys:
            return
        if state.key_text:
            self.own += LOOK * keys
            self.steps += state.key_text * sum(map(_size, chain.from_iterable(objects)))
        if not state.known:
            self._put(self._at_key(state, None), chain.from_iterable(map(dict.values, objects)))
            return
        self.own += LOOK * (keys + len(objects))
        lists: dict[str | None, list[object]] = {}
        known = state.known
        for each in objects:
            for key, inner in each.items():
                name = key if key in known else None
                if name in lists:
                    lists[name].append(inner)
                else:
                    lists[name] = [inner]
        for name, found in lists.items():
            self._put(self._at_key(state, name), found)

    def _lists(self, state: State, lists: list[list[object]]) -> None:
        items = self._compound(state, lists)
        self.steps += state.contains * items
        if state.unique:
            self.steps += state.unique * 16 * items
            if self._has_long:
                self._long(state, lists)
        for place in range(state.prefix):
            lists = [each for each in lists if len(each) > place]
            if not lists:
                return
            self.own += VALUE * len(lists)
            self._put(self._at_item(state, place), [each[place] for each in lists])
        if state.prefix:
            lists = [each[state.prefix :] for each in lists]
        if any(lists):
            self._put(self._at_item(state, state.prefix), chain.from_iterable(lists))

    def _compound(self, state: State, values: list[Any]) -> int:
        """Count what objects and lists have in common; returns how many values are in them."""
        held = sum(map(len, values))
        self.steps += state.compound * len(values)
        if state.unevaluated:
            self.steps += UNEVALUATED * state.unevaluated * held * len(state.nodes)
        return held

    def _long(self, state: State, lists: list[list[object]]) -> None:
        for each in lists:
            for value in inside(each):
                self.own += LOOK_INTO
                if is_long(value):
                    self.steps += state.unique * LONG * len(each) * len(each)
                    break

    def _put(self, state: State, values: Any) -> None:
        self.below.setdefault(state, []).extend(values)


def _of(kind: type, values: list[object], kinds: set[type]) -> list[Any]:
    return values if len(kinds) == 1 else [value for value in values if type(value) is kind]


def _size(text: str) -> int:
    return len(text) if text.isascii() else 4 * len(text)
