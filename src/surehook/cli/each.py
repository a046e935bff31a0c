"""The same act on several deliveries: one after another, and an honest exit code when only some went well."""

from __future__ import annotations

from collections.abc import Sequence

from surehook.cli.faults import OK, PARTLY, explain
from surehook.cli.output import document, line, note
from surehook.cli.server import server
from surehook.cli.story import WAITS, is_parked
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
    if json:
        document(answers)
    else:
        for answer in answers:
            origin = f"  (again for {answer['replay_of']})" if answer.get("replay_of") else ""
            reason = f" ({answer['reason']})" if answer.get("reason") else ""
            line(f"{answer['id']}  {answer['state']}{reason}{origin}")
            if is_parked(answer) and answer["reason"] in WAITS:
                note(f"  {WAITS[answer['reason']][1].format(endpoint=answer['endpoint'])}")
    return code if refused == len(deliveries) else PARTLY if refused else OK
