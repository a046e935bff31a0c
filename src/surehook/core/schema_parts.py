"""The parts of a schema: the cost of each subschema by itself, and the subschemas that it applies where.

Every keyword of every draft is read, whether or not the schema's own draft has it, since the result is an upper bound. The
costs of the engine were measured; they are in steps of about 2.5 ns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from surehook.core.pattern_cost import weigh
from surehook.core.steps import Steps

ERROR = 6_000  # steps: the engine makes an error of everything that fails within `anyOf`
CONTAINS = 40  # an item that `contains` is tried on
COMPOUND = 48  # comparing with an object or a list of an enumeration
HUGE = 4_000  # `multipleOf` in exact numbers of 300 digits
LONG = 1_600  # comparing two numbers that fit in no 64 bits
UNEVALUATED = 10  # checking whether a schema has evaluated a key
MULTIPLE = 400  # `multipleOf` of common numbers
TEXT = 40  # a text that is looked at, however short
NAME = 12  # a key that is looked for
OPTION = 3  # comparing with one value of an enumeration of several kinds
SAID = 3  # a character of the schema that an error repeats
PLACE = 3  # a place of a pattern, at one character
REGEX = 300  # a character of a text that is a pattern itself

NODE_COST, VALUE_COST = 2_048, 256  # of reading one schema, and of passing one value (core/steps.py)

_TEXT_WORDS = frozenset({"format", "contentMediaType", "contentEncoding", "minLength", "maxLength"})
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLE = ("not", "if", "then", "else")
_FOREIGN = ("http://json-schema.org/", "https://json-schema.org/")
_FOREIGN_STEPS = 1_600  # the meta-schema, applied to one value


class TooMuch(Exception):
    """The schema cannot be used at all; the message says why."""


class SchemaNode:
    """One subschema: its own cost, and the subschemas that it applies where."""

    __slots__ = (
        "additional", "compound", "contains", "each_item", "each_key", "error", "key_text", "multiple", "prefix",
        "properties", "same", "steps", "text", "tokens", "unevaluated", "unique",
    )  # fmt: skip

    def __init__(self) -> None:
        self.steps = 2
        self.text = self.tokens = self.key_text = self.compound = self.contains = self.unique = 0
        self.error = ERROR
        self.multiple: float | None = None
        self.unevaluated = False
        self.same: list[tuple[int, bool]] = []  # applied to the same value; True: as an alternative
        self.properties: dict[str, int] = {}
        self.additional: list[int] = []  # to keys that are no `properties`
        self.each_key: list[int] = []
        self.prefix: list[int] = []
        self.each_item: list[int] = []


class SchemaReader:
    """Reads a document into its subschemas."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._documents: list[object] = []
        self.nodes: list[SchemaNode] = []
        self._bases: dict[int, str] = {}
        self._places: dict[str, object] = {}
        self._dynamic: dict[str, list[object]] = {}

    def read(self, document: object) -> Steps[list[SchemaNode]]:
        """The subschemas that can be reached, the root first. Raises TooMuch."""
        yield from self._index(document)
        self._number(document)
        done = 0
        while done < len(self._documents):
            self._read(self.nodes[done], self._documents[done])
            done += 1
            yield NODE_COST
        return self.nodes

    def _number(self, schema: object) -> int:
        key = id(schema) if isinstance(schema, dict) else -1
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.nodes)
            self.nodes.append(SchemaNode())
            self._documents.append(schema)
        return number

    def _read(self, node: SchemaNode, schema: object) -> None:
        if not isinstance(schema, dict):
            if schema is _FOREIGN:
                node.steps = _FOREIGN_STEPS
                node.text = node.tokens = node.key_text = _FOREIGN_STEPS
                node.each_key.append(self._numbers[-2])
                node.each_item.append(self._numbers[-2])
            return
        node.steps += 2 * len(schema)
        get: Callable[[str], Any] = schema.get
        for word in _LISTS:
            if isinstance(get(word), list):
                node.same += [(self._number(one), word != "allOf") for one in get(word)]
        for word in _SINGLE:
            if _is_schema(get(word)):
                node.same.append((self._number(get(word)), False))
        for word in ("dependentSchemas", "dependencies", "dependentRequired"):
            for one in _values(get(word)):
                if isinstance(one, list):
                    node.steps += NAME * len(one)
                elif _is_schema(one):
                    node.same.append((self._number(one), False))
        for word in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(get(word), str):
                node.same += [(number, False) for number in self._targets(word, schema)]
        self._read_objects(node, schema)
        self._read_lists(node, schema)
        self._read_values(node, schema)

    def _read_objects(self, node: SchemaNode, schema: dict[str, object]) -> None:
        get: Callable[[str], Any] = schema.get
        properties = get("properties")
        if isinstance(properties, dict):
            node.steps += 2 * len(properties)
            node.properties = {name: self._number(one) for name, one in properties.items()}
        patterns = get("patternProperties")
        if isinstance(patterns, dict):
            node.each_key += [self._number(one) for one in patterns.values()]
            node.key_text += 2 * PLACE * sum(weigh(pattern)[0] for pattern in patterns)
        if _is_schema(get("additionalProperties")):
            node.additional.append(self._number(get("additionalProperties")))
        if _is_schema(get("unevaluatedProperties")):
            node.unevaluated = True
            node.each_key.append(self._number(get("unevaluatedProperties")))
        if isinstance(get("propertyNames"), dict):
            # A name costs by its text, and as any value would.
            node.key_text += _names_text(get("propertyNames"))
            node.each_key.append(self._number(get("propertyNames")))
        if isinstance(get("required"), list):
            node.steps += NAME * len(get("required"))

    def _read_lists(self, node: SchemaNode, schema: dict[str, object]) -> None:
        get: Callable[[str], Any] = schema.get
        for word in ("prefixItems", "items"):
            if isinstance(get(word), list):
                node.prefix += [self._number(one) for one in get(word)]
        for word in ("items", "additionalItems", "contains", "unevaluatedItems"):
            if _is_schema(get(word)):
                node.each_item.append(self._number(get(word)))
        if "contains" in schema:
            node.contains += CONTAINS
        if "unevaluatedItems" in schema:
            node.unevaluated = True
        node.unique = int(get("uniqueItems") is True)

    def _read_values(self, node: SchemaNode, schema: dict[str, object]) -> None:
        get: Callable[[str], Any] = schema.get
        options = list(get("enum")) if isinstance(get("enum"), list) else []
        if "const" in schema:
            options.append(get("const"))
            node.steps += 2
        compound = [one for one in options if isinstance(one, dict | list)]
        node.compound = COMPOUND * sum(map(_size, compound))
        long = sum(is_long(one) for one in options)
        node.steps += LONG * long
        if long or len({type(one) for one in options}) > 1:
            node.steps += OPTION * len(options)  # they are compared one by one
        if options:
            node.error += SAID * len(repr(options))
        if isinstance(get("multipleOf"), int | float):
            node.multiple = get("multipleOf")
        if isinstance(get("pattern"), str):
            places, tokens = weigh(get("pattern"))
            node.steps += TEXT
            node.text += PLACE * places
            node.tokens += PLACE * tokens
        words = _TEXT_WORDS.intersection(schema)
        each = REGEX if get("format") == "regex" else len(words)
        node.steps += TEXT * len(words)
        node.text += each
        node.tokens += each

    def _index(self, document: object) -> Steps[None]:
        """Every place that has a name of its own."""
        waiting: list[tuple[object, str]] = [(document, "")]
        self._places[""] = document
        while waiting:
            value, base = waiting.pop()
            yield VALUE_COST
            if isinstance(value, list):
                waiting += [(one, base) for one in value]
            elif isinstance(value, dict):
                for word in ("$id", "id"):
                    name = value.get(word)
                    if isinstance(name, str):
                        base, mark = urldefrag(urljoin(base, name))
                        self._name(f"{base}#{mark}" if mark else base, value)
                for word in ("$anchor", "$dynamicAnchor"):
                    name = value.get(word)
                    if isinstance(name, str):
                        self._name(f"{base}#{name}", value)
                if isinstance(value.get("$dynamicAnchor"), str):
                    self._dynamic.setdefault(value["$dynamicAnchor"], []).append(value)
                if value.get("$recursiveAnchor") is True:
                    self._dynamic.setdefault("", []).append(value)
                self._bases[id(value)] = base
                waiting += [(one, base) for one in value.values()]

    def _name(self, place: str, schema: object) -> None:
        if place and self._places.setdefault(place, schema) is not schema:
            raise TooMuch("two places in it have the same name")

    def _targets(self, word: str, schema: dict[str, Any]) -> set[int]:
        base, mark = urldefrag(urljoin(self._bases[id(schema)], schema[word]))
        found = {self._number(each) for each in self._dynamic.get(mark, ())} if word != "$ref" else set()
        if not found or mark not in self._dynamic:
            found.add(self._at(base, mark))
        return found

    def _at(self, base: str, mark: str) -> int:
        place = self._places.get(base) if base in self._places else None
        if base.startswith(_FOREIGN) and place is None:
            if -2 not in self._numbers:
                self._numbers[-2] = len(self.nodes)
                self.nodes.append(SchemaNode())
                self._documents.append(_FOREIGN)
            return self._numbers[-2]
        named = self._places.get(f"{base}#{mark}") if mark and not mark.startswith("/") else place
        if mark.startswith("/"):
            for step in unquote(mark)[1:].split("/"):
                key = step.replace("~1", "/").replace("~0", "~")
                if isinstance(named, dict):
                    named = named.get(key)
                elif isinstance(named, list) and key.isdigit() and int(key) < len(named):
                    named = named[int(key)]
                else:
                    named = None
        if not _is_schema(named):
            raise TooMuch("a reference in it cannot be followed to one place")
        return self._number(named)


def _names_text(schema: object) -> int:
    """Steps for a character of a key, by a schema of names with everything in it."""
    text = 0
    for value in inside(schema):
        if isinstance(value, dict):
            if isinstance(value.get("pattern"), str):
                text += PLACE * weigh(value["pattern"])[0]
            text += 4 * ("format" in value)
    return text


def _is_schema(value: object) -> bool:
    return isinstance(value, dict | bool)


def _values(value: object) -> list[object]:
    return list(value.values()) if isinstance(value, dict) else []


def inside(value: object) -> Iterator[object]:
    """The value and everything in it."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, list):
            waiting += each
        elif isinstance(each, dict):
            waiting += each.values()


def is_long(value: object) -> bool:
    """True for a number that fits in no 64 bits."""
    return isinstance(value, int) and not -(2**63) <= value < 2**63


def _size(value: object) -> int:
    """Values in it; numbers that are long count as many."""
    return sum(LONG // COMPOUND if is_long(each) else 1 for each in inside(value))
