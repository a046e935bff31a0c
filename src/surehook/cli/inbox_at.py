"""The inbox that a command names by MODULE:INBOX, and what it answers."""

from __future__ import annotations

from typing import Any

from surehook.cli.output import note


def inbox(place: str) -> Any:
    from surehook.inbox.running import inbox_at

    return inbox_at(place)


def queued(place: str) -> dict[str, int] | None:
    """Numbers of messages in front of the table; None: there is no queue, or it cannot be asked."""
    from msgspec import structs

    from surehook.inbox.queue.port import QueueAway

    try:
        found = ask(place, "queued")
    except QueueAway as error:
        note(f"how much waits in the queue is not known: {error}")
        return None
    return None if found is None else structs.asdict(found)


def ask(place: str, name: str, *words: Any, **named: Any) -> Any:
    from surehook.inbox.running import asked

    found = inbox(place)
    from surehook.inbox.sql.stores import translated

    with translated():
        return asked(found, name, *words, **named)
