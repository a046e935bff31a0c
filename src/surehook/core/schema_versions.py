"""The schemas of one event type, side by side: the version that an event names chooses the one that judges it.

A type has its own version, which applies to events that name none, and may name others. As long as it names none at all,
its own schema judges every event, whatever version that names, so that older types keep working. Where others are named,
even as an empty object, an unknown version is refused: a schema of another version would accept what it does not know, or
refuse it for the wrong reason.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from surehook.core.errors import Problem
from surehook.core.json_text import quoted
from surehook.core.model import EventType
from surehook.core.published import EventIn
from surehook.core.schema import Schema

_decode = msgspec.json.Decoder(dict[str, Raw]).decode


class Versions(Struct, frozen=True):
    """The schemas that events of one type are judged by, by version."""

    own: str
    schema: Schema | None  # of `own`; None: events of it are not judged
    others: Mapping[str, Schema] | None = None  # None: versions are not told apart

    def refuses(self, event: EventIn) -> Problem | None:
        """Problem `unknown_schema_version`, or the chosen schema's Problem with the event's data, or None."""
        if self.others is not None and event.schema_version not in (None, self.own, *self.others):
            return Problem(
                "unknown_schema_version", f"{quoted(event.type)} has no version {quoted(str(event.schema_version))}",
                field="schema_version", hint=f"known: {', '.join(sorted({self.own, *self.others}))}",
            )  # fmt: skip
        schema = self._chosen(event)
        return None if schema is None else schema.mismatch(event.data)

    def weight(self, event: EventIn) -> int:
        """Upper bound of the steps of judging the event, from counts of its bytes alone."""
        schema = self._chosen(event)
        return 0 if schema is None else schema.weight(event.data)

    def _chosen(self, event: EventIn) -> Schema | None:
        if self.others is None:
            return self.schema
        version = self.own if event.schema_version is None else event.schema_version
        return self.schema if version == self.own and version not in self.others else self.others.get(version)


def packed(schemas: Mapping[str, Schema]) -> bytes:
    """The form in the ledger: one JSON object, by version."""
    return msgspec.json.encode({version: Raw(schema.source) for version, schema in schemas.items()})


def unpacked(stored: bytes | None) -> dict[str, bytes]:
    """The schemas' own bytes, by version."""
    return {} if stored is None else {version: bytes(schema) for version, schema in _decode(stored).items()}


def check(event_type: EventType) -> None:
    """Refuse a version whose schema is given in two places. Raises Problem."""
    version = event_type.schema_version
    if event_type.schema is not None and version in unpacked(event_type.schemas):
        raise Problem(
            "invalid_schema", f"version {quoted(version)} has a schema already: `schema` is that of `schema_version`",
            field=f"schemas.{version}", hint="give it in one place, and null in the other",
        )  # fmt: skip
