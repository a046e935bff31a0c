"""Tables as text, so that every service has the same: JSON and TOML, with the digest that says whether they are.

The text is the table's own keys, and `digest` beside them. A digest that is given must be right; leave it out while editing.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Literal

import msgspec

from surehook.core.workflow.check import Flaw, WorkflowError, misshapen
from surehook.core.workflow.table import Table

Format = Literal["json", "toml"]

TEXT_BYTES_MAX = 1024 * 1024  # a table of a thousand moves is 50 KiB

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def table_of(data: Mapping[str, object]) -> Table:
    """The table that plain data describes. Raises WorkflowError with everything that is wrong with it."""
    given = dict(data)
    digest = given.pop("digest", None)
    try:
        table = msgspec.convert(given, Table)
    except msgspec.ValidationError as error:
        raise misshapen(error) from None
    if digest is not None and digest != table.digest:
        raise WorkflowError(
            f"the table is not the one that {str(digest)[:12]}… was made for; its digest is {table.digest}",
            field="digest",
            hint="take the table as it was exported, or leave `digest` out and give the table a new `version`",
        )
    return table


def parse_table(text: str, form: Format) -> Table:
    """The table of a JSON or TOML text. Raises WorkflowError; keys that are written twice are ambiguous moves."""
    if len(text) > TEXT_BYTES_MAX:
        raise WorkflowError(f"more than {TEXT_BYTES_MAX} characters")
    try:
        data = json.loads(text, object_pairs_hook=_once) if form == "json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise WorkflowError(f"this is not {form.upper()}: {error}") from None
    if not isinstance(data, dict):
        raise WorkflowError("a table is an object with `document_type`, `states`, `moves` …")
    return table_of(data)


def render_table(table: Table, form: Format = "json") -> str:
    """The table as text with its digest; reading it gives the same table."""
    data = {"digest": table.digest, **table.data}
    if form == "json":
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return "\n".join(_toml(data, ())).lstrip("\n") + "\n"


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            flaw = Flaw("ambiguous_move", key, f"{key!r} is written twice")
            raise WorkflowError(f"{key!r} is written twice (ambiguous_move)", field=key, flaws=(flaw,))
        found[key] = value
    return found


def _toml(data: Mapping[str, object], path: tuple[str, ...]) -> list[str]:
    """A mapping as TOML: its plain values first, then a section for every mapping in it."""
    lines = [f"{_key(key)} = {_value(one)}" for key, one in data.items() if not isinstance(one, dict)]
    for key, one in data.items():
        if isinstance(one, dict):
            inner = (*path, key)
            if any(not isinstance(value, dict) for value in one.values()):
                lines += ["", f"[{'.'.join(map(_key, inner))}]"]
            lines += _toml(one, inner)
    return lines


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    # A JSON string is a TOML basic string, once DEL is escaped as well; numbers and lists of strings are the same.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
