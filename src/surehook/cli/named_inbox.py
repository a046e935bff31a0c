"""The inbox that a command names by MODULE:INBOX, and its answers to one question."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from surehook.cli.output import note
from surehook.core.errors import Problem, SettingsError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from surehook.inbox import AsyncInbox, Inbox

T = TypeVar("T")


def inbox(place: str) -> Inbox | AsyncInbox:
    from surehook.inbox.running import inbox_at

    return inbox_at(place)


def ask(
    place: str, question: Callable[[Inbox | AsyncInbox], T | Awaitable[T]], *, may_create: bool = False
) -> T:
    """The answer of the named inbox, which is closed then. Raises StoreError, and SettingsError for a file of SQLite that is not
    there: to look into it would make an empty one."""
    from surehook.inbox.running import asked
    from surehook.inbox.sql.engines import missing_file

    found = inbox(place)
    if not may_create and (path := missing_file(found.store)) is not None:
        raise SettingsError(
            "MODULE:INBOX",
            f"the database of {place} is not there: {path}",
            hint=f"run it in the folder in which the application runs; `surehook inbox upgrade {place}` makes it here",
        )
    from surehook.inbox.sql.store_errors import translated

    try:
        with translated():
            return asked(found, question)
    except (Problem, SettingsError) as error:
        error.hint = _in_options(error.hint, place)
        raise


# Options and commands in place of the calls that the inbox's hints name.
_OPTIONS = {
    "source=, type=, state=, …": "--source, --type, --state, …",
    "event.ref, such": "its `ref`, such",
    "events(id=…)": "`surehook inbox events {place} --id …`",
}


def _in_options(hint: str | None, place: str) -> str | None:
    if hint is not None:
        for call, option in _OPTIONS.items():
            hint = hint.replace(call, option.format(place=place))
    return hint


def check_source(place: str, name: str | None) -> None:
    """Raises SettingsError for a source that the named inbox neither defines nor has events of, as it may of an old one. An
    inbox without sources is there to look only, and knows none."""
    known = inbox(place).receiver.sources
    if name is None or not known or name in known:
        return
    from surehook.inbox.receive import no_source

    found = ask(place, lambda inbox: inbox.page(source=name, limit=1))
    if not found.events and found.until is None:
        raise no_source(name, known)


def queued(place: str) -> tuple[dict[str, int] | None, bool]:
    """Numbers of messages in front of the table, and whether there is a queue; without numbers it could not be asked."""
    from msgspec import structs

    from surehook.inbox.queue.port import QueueAway

    try:
        found = ask(place, lambda inbox: inbox.queued())
    except QueueAway as error:
        note(f"the queue in front of the table could not be asked, so what waits there is not known: {error}")
        return None, True
    return (None, False) if found is None else (structs.asdict(found), True)
