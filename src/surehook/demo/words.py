"""The result in sentences; the last line has it in numbers. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from surehook.core.answers import DeliveryOut
from surehook.demo.kept import DatabaseContent
from surehook.demo.memory import ReceiverMemory
from surehook.demo.tally import OPEN_STATES, Totals, waiting


def explain(
    totals: Totals,
    deliveries: Iterable[DeliveryOut],
    memories: Mapping[str, ReceiverMemory],
    kept: DatabaseContent,
) -> Iterator[str]:
    """One line for each thing worth saying."""
    requests = sum(memory.requests for memory in memories.values())
    unverified = sum(memory.unverified for memory in memories.values())
    yield f"receivers saw {requests} requests; signatures that did not hold: {unverified}"
    if totals.open:
        reasons = Counter(d.reason or d.state for d in deliveries if d.state in OPEN_STATES)
        yield f"{totals.open} open, kept until their receiver answers: {_listed(reasons)}"
    if totals.dead:
        yield f"{totals.dead} dead letters: kept whole, to be replayed or dismissed"
    if totals.duplicated:
        yield f"{totals.duplicated} requests came again after a 2xx: same event id, same bytes"
    yield f"the inbox stored {len(kept.states)} events, {kept.early} too early; documents: {_listed(kept.documents)}"
    if totals.lost:
        yield f"{totals.lost} lost: neither delivered nor kept, or answered for and not there"
    if totals.applied_twice:
        yield f"{totals.applied_twice} events took effect more than once"
    elif totals.unordered:
        yield f"{totals.unordered} events took effect in a wrong order"
    else:
        yield f"{totals.applied} events took effect, each once and in its order"
    if totals.stuck:
        yield f"{totals.stuck} events stand still in the inbox"
    elif waits := waiting(kept):
        yield f"{waits} events wait in the inbox for one before them"


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"
