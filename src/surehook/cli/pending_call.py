"""The change that a command has asked of the server and not yet shown the answer of.

Whoever interrupts the command then, or loses the server or its ledger, is told how to find out whether it was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surehook.client.calls import ApiCall

SHOWN = frozenset({"endpoints", "deliveries", "events"})  # nouns with a command that shows one by its id
LISTED = frozenset({*SHOWN, "tenants", "event-types", "dead-letters", "replays"})
LEAVES_NOTHING = ("/test",)  # calls that leave nothing to be found

_call: ApiCall | None = None


def began(call: ApiCall) -> None:
    """Note a request that is about to be sent."""
    global _call
    if call.method != "GET" and not call.path.endswith(LEAVES_NOTHING):
        _call = call


def clear() -> None:
    """Forget it: the answer was printed, the server has surely refused, or another command begins."""
    global _call
    _call = None


def advice() -> str | None:
    """A sentence on what may have been done and how to find out; None where nothing is in doubt."""
    if _call is None:
        return None
    if _call.path == "/v1/events":
        return f"the event may have been accepted: {_repeat(_call)}"
    if _call.path.endswith("/rotate-secret"):
        return "the secret may have been rotated: rotate it again for one that is shown, and that one holds"
    return f"it may have been done: look with `surehook {_look(_call.path)}`"


def _repeat(call: ApiCall) -> str:
    """An event is known by its id or its key: the same again is the same event."""
    from msgspec.json import decode

    key = call.headers.get("idempotency-key")
    if key is not None:
        return f"the same command with --key {key} again is the same event"
    event = decode(call.body)["id"]
    return f"look with `surehook events show {event}`; the same command with --id {event} is the same event"


def _look(path: str) -> str:
    noun, _, rest = path.removeprefix("/v1/").partition("/")
    named = rest.split("/")[0]
    if noun in SHOWN and "_" in named:
        return f"{noun} show {named}"
    return f"{noun} list" if noun in LISTED else "doctor"
