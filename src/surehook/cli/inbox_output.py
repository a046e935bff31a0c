"""Output of `surehook inbox`: rows, bodies, and texts of senders without control characters."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from surehook.cli.output import ApiObject, document, note
from surehook.cli.tables import Column, print_table


def print_list(
    found: Sequence[Struct], columns: list[str], json: bool, nothing: str, *, more: str | None = None
) -> None:
    """Print these columns of the structs, or all of their fields as JSON; `nothing` where there are none."""
    if json:
        document(
            {
                "data": [
                    {name: plain(getattr(one, name)) for name in one.__struct_fields__} for one in found
                ],
                "next": more,
            }
        )
    elif found:
        print_table(list(map(Column, columns)), [[getattr(one, name) for name in columns] for one in found])
    else:
        note(nothing)


def print_rows(rows: Sequence[ApiObject]) -> None:
    """Print rows that have the same names."""
    print_table(list(map(Column, rows[0])), [list(row.values()) for row in rows])


def note_waiting(rows: Sequence[ApiObject]) -> None:
    """Note for each source whose oldest event has been due for long: its workers may not run, or not keep up."""
    from surehook.core import instants
    from surehook.host.clock import SystemClock
    from surehook.inbox.no_workers import WAITS_S

    now = SystemClock().now()
    for row in rows:
        if (since := row["oldest_due_at"]) and (waits_s := (now - instants.parse(since)) / 1000) >= WAITS_S:
            note(
                f"{row['source']}: the oldest has been due for {waits_s:.0f} s: do workers run, and do they keep up?"
            )


def plain(value: object) -> object:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def body_text(body: bytes | None) -> str:
    if body is None:
        return "the body is past its retention"
    return harmless(body.decode("utf-8", "backslashreplace"))


def harmless(text: str) -> str:
    """A sender's text without characters that a terminal would interpret."""
    return "".join(one if one.isprintable() or one in "\n\t" else f"\\x{ord(one):02x}" for one in text)
