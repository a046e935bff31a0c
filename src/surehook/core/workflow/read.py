"""Reading a message's body: the values that a table needs, from where the table's `fields` say they stand."""

from __future__ import annotations

from surehook.core.sources.payload import at
from surehook.core.workflow.table_values import Fields
from surehook.core.workflow.values import Arrival

NAME_CHARS_MAX = 255  # of a document's id, a signer, a cause: as long as an event id may be
SEQUENCE_MAX = 2**63 - 1


def document_of(body: object, fields: Fields) -> str | None:
    """The id of the document a body is about; None where it names none that can be used, or one with spaces around it."""
    name, flaw = _name(body, fields.document, "document")
    # With spaces around it, some databases take it for another document's.
    return None if flaw or name is None or name != name.strip() else name


def arrival_of(
    body: object, fields: Fields, *, id: str, type: str, source: str = "", remediated: bool = False
) -> Arrival:
    """Read the arrival that the table looks at. Never raises: a value that cannot be read becomes the arrival's `flaw`."""
    sequence, bad_number = _number(body, fields.sequence)
    version, bad_version = _name(body, fields.version, "version")
    cause, bad_cause = _name(body, fields.cause, "cause")
    party, bad_party = _name(body, fields.party, "party")
    replaces, bad_replaces = _name(body, fields.replaces, "replaces")
    token, bad_token = _name(body, fields.token, "token")
    bad = (bad_number, bad_version, bad_cause, bad_party, bad_replaces, bad_token)
    return Arrival(
        id=id,
        source=source,
        type=type,
        sequence=sequence,
        version=version,
        cause=cause,
        party=party,
        replaces=replaces,
        token=token,
        remediated=remediated,
        flaw=next((flaw for flaw in bad if flaw is not None), None),
    )


def _number(body: object, path: str | None) -> tuple[int | None, str | None]:
    value = None if path is None else at(body, path)
    if value is None:
        return None, None
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 19:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= SEQUENCE_MAX:
        return None, f"{path} is no sequence number"
    return value, None


def _name(body: object, path: str | None, what: str) -> tuple[str | None, str | None]:
    value = None if path is None else at(body, path)
    if value is None:
        return None, f"{path} is not there" if what == "document" else None
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not 0 < len(value) <= NAME_CHARS_MAX or not value.isprintable():
        return None, f"{path} is not 1 to {NAME_CHARS_MAX} visible characters"
    return value, None
