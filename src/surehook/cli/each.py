"""The same act on several deliveries: one after another, and an honest exit code when only some went well."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from surehook.cli.faults import OK, PARTLY, explain
from surehook.cli.output import document, line, note
from surehook.cli.server import server
from surehook.cli.story import ASKS_FIRST, WAITS, is_parked
from surehook.client import Client
from surehook.client.errors import Refused


def each(deliveries: Sequence[str], verb: str, *, json: bool, url: str | None, key: str | None) -> int:
    """`verb` on every delivery. 8 when some were refused; the error's own code when all were."""
    answers, refused, code = [], 0, OK
    with server(url, key) as client:
        for delivery in deliveries:
            try:
                answers.append(client.deliveries.act(delivery, verb))
            except Refused as error:
                what, hint, code = explain(error)
                refused += 1
                note(f"{delivery}: {what}" + (f" – {hint}" if hint else ""))
        held = set() if json or verb != "resend" else _held(client, answers)
    if json:
        document(answers)
    else:
        for answer in answers:
            origin = f"  (again for {answer['replay_of']})" if answer.get("replay_of") else ""
            reason = f" ({answer['reason']})" if answer.get("reason") else ""
            line(f"{answer['id']}  {answer['state']}{reason}{origin}")
            if verb == "resend" and _asks_first(answer, held):
                note(f"  {ASKS_FIRST}")
            elif is_parked(answer) and answer["reason"] in WAITS:
                note(f"  {WAITS[answer['reason']][1].format(endpoint=answer['endpoint'])}")
    return code if refused == len(deliveries) else PARTLY if refused else OK


def _held(client: Client, answers: Sequence[dict[str, Any]]) -> set[str]:
    """Endpoints of what is about to be sent that an open breaker holds. A new delivery does not say so yet: it is parked as
    somebody takes it up."""
    about = {
        answer["endpoint"] for answer in answers if answer["finished_at"] is None and not is_parked(answer)
    }
    held = set()
    for endpoint in sorted(about):
        with suppress(Refused):  # deleted just now
            if client.endpoints.get(endpoint).get("breaker") is not None:
                held.add(endpoint)
    return held


def _asks_first(answer: dict[str, Any], held: Collection[str]) -> bool:
    if is_parked(answer):
        return answer["reason"] in ("breaker", "key")
    return answer["finished_at"] is None and answer["endpoint"] in held
