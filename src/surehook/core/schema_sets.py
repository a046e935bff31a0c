"""A set of schemas that are applied to one value, with the sum of their costs for each kind of value."""

from __future__ import annotations

from surehook.core.schema_parts import SchemaNode

PLAIN = 1e15

Count = dict[tuple[int, bool], int]  # how often each schema is applied; True: within an alternative


class State:
    """Schemas that are applied to one value."""

    __slots__ = (
        "compound", "contains", "errors", "huge", "items", "key_text", "keys", "known", "multiple", "nodes", "prefix",
        "steps", "text", "tokens", "unevaluated", "unique",
    )  # fmt: skip

    def __init__(self, count: Count, nodes: list[SchemaNode]) -> None:
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
