"""A delivery for people: one row of a list, or everything about it, with every attempt and what to do."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from surehook.cli.human_times import age, clock_ms, coming, local
from surehook.cli.output import ApiObject, line, paint
from surehook.cli.tables import Column
from surehook.core import ids
from surehook.core.instants import parse, say
from surehook.core.receipt import STAGES

BODY_CHARS = 300  # of a response, enough to recognise it; --json has all that was kept
LINKS = ("event", "type", "tenant", "endpoint", "subject", "correlation_id", "replay_of", "replayed_by")
HELD_MS = 2_000  # an attempt that began so much later than planned was held back
COLUMNS = (
    Column("id"),
    Column("state"),
    Column("result", least=10),
    Column("try"),
    Column("age"),
    Column("type", least=8),
    Column("next", rank=1),
    Column("tenant", rank=2, least=6),
    Column("endpoint", rank=3),
)

# What a parked delivery waits for, in a list and in a sentence.
WAITS = {
    "breaker": (
        "the next probe",
        "its URL fails too often; one request asks now and then whether it is well, and `surehook breakers probe URL` now",
    ),
    "key": (
        "the next probe",
        "its receiver refuses the signature or the credentials: give it the current secret, or the endpoint the right --auth",
    ),
    "paused": ("resume", "its endpoint is paused: surehook endpoints resume {endpoint}"),
    "inactive": ("resume", "its endpoint was switched off: surehook endpoints resume {endpoint}"),
    "failure": ("resume", "its endpoint is in failure: surehook endpoints resume {endpoint}"),
    "share": ("its turn", "its endpoint has its share of memory full; it goes as soon as others have gone"),
    "order": ("its turn", "an earlier event of its subject goes first"),
}
# Note for a person who asks for a delivery behind an open breaker.
WAITS_FOR_PROBE = (
    "not sent yet: the URL's breaker is open. One delivery that is due asks now whether it is well, and what is parked "
    "follows when that arrives; `surehook breakers close URL` sends at once"
)
# The ledger only knows who holds it: a mark for requests on the wire would be one more write for each of them.
HELD = "by a process: it waits for its turn there, or for its receiver's answer; `surehook lanes` counts both"
BY_HAND = frozenset({"paused", "inactive", "failure"})  # nothing happens until somebody resumes the endpoint


def row(delivery: ApiObject) -> list[object]:
    return [
        delivery["id"],
        f"parked {delivery['reason']}" if is_parked(delivery) else delivery["state"],
        result(delivery),
        delivery["attempts"],
        _age(delivery),
        delivery["type"],
        _next(delivery),
        delivery["tenant"],
        delivery["endpoint"],
    ]


def is_parked(delivery: ApiObject) -> bool:
    return bool(delivery["state"] == "parked")


def waits_by_hand(delivery: ApiObject) -> bool:
    """True if nothing will happen until a person does something."""
    return is_parked(delivery) and delivery["reason"] in BY_HAND


def _age(delivery: ApiObject) -> str:
    """Time since its event, by the instant in the id."""
    raw = ids.try_parse(ids.DELIVERY, delivery["id"])
    return "" if raw is None else age(clock_ms() - ids.millis(raw))


def _next(delivery: ApiObject) -> str:
    """`in 4m 10s`; `probe in 3m`; `resume`; `ended 5m ago`."""
    if delivery["dismissal"] is not None:
        return f"dismissed {age(clock_ms() - parse(delivery['dismissal']['at']))} ago"
    if delivery["finished_at"] is not None:
        return f"ended {age(clock_ms() - parse(delivery['finished_at']))} ago"
    if is_parked(delivery):
        when = coming(delivery["due_at"])
        return f"probe {when}" if when else WAITS.get(delivery["reason"], ("",))[0]
    return "" if delivery["state"] == "sending" else coming(delivery["due_at"])


def result(entry: ApiObject) -> str:
    """`timed_out?`: the question mark means that the receiver may have got it all the same."""
    outcome = entry.get("outcome")
    return "" if outcome is None else f"{outcome}?" if entry.get("unknown") else str(outcome)


def print_delivery(delivery: ApiObject, attempts: Sequence[ApiObject], *, now_ms: int) -> None:
    """Print state, links and every attempt, oldest first."""
    out = sys.stdout
    line(f"{paint(delivery['id'], 'bold', out)}  {headline(delivery, now_ms)}")
    for name in LINKS:
        if delivery.get(name) is not None:
            line(f"  {paint(name.replace('_id', '').ljust(11), 'dim', out)}  {delivery[name]}")
    if delivery["dismissal"] is not None:
        put_away = f"{local(delivery['dismissal']['at'])}: {' '.join(delivery['dismissal']['note'].split())}"
        line(f"  {paint('dismissed'.ljust(11), 'dim', out)}  {put_away}")
    if is_parked(delivery):
        _, why = WAITS.get(delivery["reason"], ("", ""))
        line(f"  {paint('waits'.ljust(11), 'dim', out)}  {why.format(endpoint=delivery['endpoint'])}")
        if delivery["due_at"] is not None:
            when = f"{local(delivery['due_at'])} ({coming(delivery['due_at'])})"
            line(f"  {paint('next probe'.ljust(11), 'dim', out)}  {when}")
    if delivery["state"] == "sending":
        line(f"  {paint('held'.ljust(11), 'dim', out)}  {HELD}")
    line()
    for number, attempt in enumerate(attempts, start=1):
        is_void = number == len(attempts) and (is_parked(delivery) or delivery["finished_at"] is not None)
        for text in attempt_lines(attempt, shows_next=not is_void):
            line(text)
        held_ms = _held_ms(attempt, attempts[number]) if number < len(attempts) else 0
        if held_ms >= HELD_MS:
            line(f"     held  {say(held_ms)} longer: parked, or no slot was free")
    if not attempts:
        line("  no attempt yet")
    if delivery["request_headers"] is not None:
        line(f"  {paint('headers of its last request', 'dim', out)}")
        for name, value in delivery["request_headers"].items():
            line(f"     {name}: {value}")
    if delivery.get("receipt") is not None:
        line(f"  {paint('receipt'.ljust(11), 'dim', out)}  {receipt_text(delivery['receipt'])}")
    if any(attempt["unknown"] for attempt in attempts):
        line("  ? sent, but no answer was seen: the receiver may have got it")


def _held_ms(attempt: ApiObject, following: ApiObject) -> int:
    """Milliseconds between the planned and the real beginning of the attempt after this one."""
    if attempt["next_at"] is None or following["kind"] != "attempt":
        return 0
    return parse(following["started_at"]) - parse(attempt["next_at"])


def headline(delivery: ApiObject, now_ms: int) -> str:
    """`retrying, attempt 3 in 4m 10s`; `parked (breaker)`; `delivered at …`."""
    state = str(delivery["state"])
    if delivery["reason"]:
        state += f" ({delivery['reason']})"
    if delivery["finished_at"] is not None:
        return f"{state} at {local(delivery['finished_at'])} after {_times(delivery['attempts'])}"
    if delivery["state"] in ("scheduled", "retrying") and delivery["due_at"] is not None:
        left = parse(delivery["due_at"]) - now_ms
        return f"{state}, attempt {delivery['attempts'] + 1} {'now' if left <= 0 else 'in ' + say(left)}"
    return f"{state} after {_times(delivery['attempts'])}"


def receipt_text(receipt: ApiObject) -> str:
    """`rejected at … (late: too late), processed at …`: the stages that the receiver reported, highest first."""
    stages = [stage for stage in reversed(STAGES) if receipt[f"{stage}_at"] is not None]
    parts = [f"{stage} at {local(receipt[f'{stage}_at'])}" for stage in stages]
    why = ": ".join(part for part in (receipt["code"], receipt["note"]) if part)
    if why:
        parts[0] += f" ({' '.join(why.split())})"
    return ", ".join(parts)


def _times(attempts: int) -> str:
    return f"{attempts} attempt" if attempts == 1 else f"{attempts} attempts"


def attempt_lines(attempt: ApiObject, *, shows_next: bool = True) -> list[str]:
    """One entry of the history: what happened, what it means, what was answered, what comes next."""
    out = sys.stdout
    at = local(attempt["started_at"])
    if attempt["kind"] == "interrupted":
        return [f"  –  {at}  interrupted: the server stopped; whether this one was sent is not known"]
    if attempt["kind"] == "ended":
        return [f"  –  {at}  ended without another attempt"]
    colour = "green" if attempt["outcome"] == "delivered" else "red"
    status = f" {attempt['status']}" if attempt["status"] is not None else ""
    error = f" {attempt['error']}" if attempt["error"] else ""
    what = paint(f"{result(attempt)}{status}{error}", colour, out)
    lines = [f"  {attempt['number']}  {at}  {attempt['lane']:<5}  {what}  {_timings(attempt)}"]
    if attempt["hint"]:
        lines.append(f"     {paint('hint', 'yellow', out)}  {attempt['hint']}")
    body = (attempt.get("response") or {}).get("body")
    if body:
        shown = " ".join(str(body).split())
        lines.append(f"     said  {shown[:BODY_CHARS]}{'…' if len(shown) > BODY_CHARS else ''}")
    if shows_next and attempt["next_at"] is not None:
        lines.append(f"     next  {local(attempt['next_at'])}")
    return lines


def _timings(attempt: ApiObject) -> str:
    timings = attempt.get("timings_ms") or {}
    parts = [f"{name.replace('_', ' ')} {value:g} ms" for name, value in timings.items() if value is not None]
    if attempt.get("address"):
        parts.append(f"to {attempt['address']}")
    return ", ".join(parts)
