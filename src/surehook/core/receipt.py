"""Receipts: what a receiver reports later about one event that it was given.

Stages are few and one-way: `accepted` (stored), `processed` (its effects are committed), `rejected`, `finalized` (its effects
stand). A `Word` holds the instant of every stage that was reached, so it is the whole state and not a step: words may be
lost, repeated, and overtake each other, and `join` of all that came is the same in every order. It never lowers. A
rejected event that was processed again may still become `finalized`; what is final stays so.

    join   commutative, associative, idempotent: latest instant of each stage; code and note of the highest stage
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

Stage = Literal["accepted", "processed", "rejected", "finalized"]
STAGES: tuple[Stage, ...] = get_args(Stage)  # each wins over those before it
ENDS: tuple[Stage, ...] = ("rejected", "finalized")  # nobody has to wait for more
# On a delivery: receipts are asked for; its value is the id of the endpoint that asks.
HEADER = "webhook-receipts"
CODE_CHARS = 64
NOTE_CHARS = 200  # a sentence for people of another company; what is longer is cut


class Wanted(Struct, frozen=True, forbid_unknown_fields=True):
    """Receipts that an endpoint asks for. `finalize_within_s`: seconds after a delivery until a missing end raises a notice
    (None: never)."""

    finalize_within_s: int | None = None


class Word(Struct, frozen=True, omit_defaults=True):
    """Stages that one event has reached so far, at least one (Unix milliseconds, by the receiver's clock)."""

    accepted_at: int | None = None
    processed_at: int | None = None
    rejected_at: int | None = None
    finalized_at: int | None = None
    code: str | None = None  # why, for machines
    note: str | None = None  # why, for people

    @property
    def stage(self) -> Stage:
        """The highest stage that was reached. Raises ValueError for a word that says nothing."""
        for stage in reversed(STAGES):
            if self.at(stage) is not None:
                return stage
        raise ValueError("a word without a stage")

    def at(self, stage: Stage) -> int | None:
        """When the stage was reached, or None."""
        at: int | None = getattr(self, f"{stage}_at")
        return at


def word(
    stage: Stage, at: int, *, accepted_at: int | None = None, code: str | None = None, note: str | None = None
) -> Word:
    """A word that a stage was reached, with code and note cut to their bounds."""
    times = {"accepted_at": accepted_at, f"{stage}_at": at}
    return Word(**times, code=code and code[:CODE_CHARS], note=note and note[:NOTE_CHARS])


def join(one: Word, other: Word) -> Word:
    """Both words in one."""
    upper = max(one, other, key=_weight)
    times = {f"{stage}_at": _later(one.at(stage), other.at(stage)) for stage in STAGES}
    return Word(**times, code=upper.code, note=upper.note)


def rank(stage: Stage) -> int:
    """Its place among the stages, from 1; 0 is left for nothing said."""
    return STAGES.index(stage) + 1


def _weight(one: Word) -> tuple[int, int, str, str]:
    """Whose code and note stand; total, so that the order of joining cannot matter."""
    stage = one.stage
    return rank(stage), one.at(stage) or 0, one.code or "", one.note or ""


def _later(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)
