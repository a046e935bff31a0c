"""What a command has asked the server to change and not yet shown the answer of: whoever interrupts it there, or loses the
server or its ledger there, is told how to find out whether it was done. What has been shown needs no word."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from surehook.client.calls import ApiCall

SHOWN = frozenset({"endpoints", "deliveries", "events"})  # nouns whose commands show one by its id
LISTED = frozenset({*SHOWN, "tenants", "event-types", "dead-letters", "replays"})
LEAVES_NOTHING = ("/test",)  # a call that leaves nothing to be found, whether it was made or not

_call: ApiCall | None = None


def begun(call: ApiCall) -> None:
    """A request leaves now."""
    global _call
    if call.method != "GET" and not call.path.endswith(LEAVES_NOTHING):
        _call = call


def ended() -> None:
    """The command has printed an answer, the server has refused in no doubt, or another command begins."""
    global _call
    _call = None


def doubt() -> str | None:
    """What may have been done, and how to find out; None where nothing is in doubt."""
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
