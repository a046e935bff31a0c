"""Resending and cancelling several deliveries, one after another, with an exit code of its own for a partial success."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from surehook.cli.delivery_text import WAITS, WAITS_FOR_PROBE, is_parked
from surehook.cli.errors import OK, PARTLY, explain
from surehook.cli.output import ApiObject, document, line, note
from surehook.cli.server import server
from surehook.cli.tracked_client import TrackedClient
from surehook.client.errors import Refused


def resend_all(deliveries: Sequence[str], *, json: bool, url: str | None, key: str | None) -> int:
    """Resend each delivery. Returns 8 when some were refused, the error's own code when all were."""
    with server(url, key) as client:
        answers, code = _each(client.deliveries.resend, deliveries)
        held = set() if json else _held(client, answers)
    if json:
        document(answers)
        return code
    for answer in answers:
        _print(answer)
        if _waits_for_probe(answer, held):
            note(f"  {WAITS_FOR_PROBE}")
        else:
            _note_wait(answer)
    return code


def cancel_all(deliveries: Sequence[str], *, json: bool, url: str | None, key: str | None) -> int:
    """Cancel each delivery. Returns 8 when some were refused, the error's own code when all were."""
    with server(url, key) as client:
        answers, code = _each(client.deliveries.cancel, deliveries)
    if json:
        document(answers)
        return code
    for answer in answers:
        _print(answer)
        _note_wait(answer)
    return code


def _each(act: Callable[[str], ApiObject], deliveries: Sequence[str]) -> tuple[list[ApiObject], int]:
    """Do it to each delivery, note the refusals; returns the answers and the exit code."""
    answers, code = [], OK
    for delivery in deliveries:
        try:
            answers.append(act(delivery))
        except Refused as error:
            what, hint, code = explain(error)
            note(f"{delivery}: {what}" + (f" – {hint}" if hint else ""))
    return answers, code if not answers else PARTLY if len(answers) < len(deliveries) else OK


def _print(answer: ApiObject) -> None:
    origin = f"  (again for {answer['replay_of']})" if answer.get("replay_of") else ""
    reason = f" ({answer['reason']})" if answer.get("reason") else ""
    line(f"{answer['id']}  {answer['state']}{reason}{origin}")


def _note_wait(answer: ApiObject) -> None:
    if is_parked(answer) and answer["reason"] in WAITS:
        note(f"  {WAITS[answer['reason']][1].format(endpoint=answer['endpoint'])}")


def _held(client: TrackedClient, answers: Sequence[ApiObject]) -> set[str]:
    """Endpoints with an open breaker among those of deliveries that are due now. A new delivery does not show it yet: it is
    parked when a process claims it."""
    about = {
        answer["endpoint"] for answer in answers if answer["finished_at"] is None and not is_parked(answer)
    }
    held = set()
    for endpoint in sorted(about):
        with suppress(Refused):  # deleted just now
            if client.endpoints.get(endpoint).get("breaker") is not None:
                held.add(endpoint)
    return held


def _waits_for_probe(answer: ApiObject, held: Collection[str]) -> bool:
    if is_parked(answer):
        return answer["reason"] in ("breaker", "key")
    return answer["finished_at"] is None and answer["endpoint"] in held
