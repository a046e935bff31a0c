"""Repeated requests: new, repeat or conflict.

Two keys tell repeats: the event id (made by a client library or an outbox) and the caller's own
`Idempotency-Key`. Both are judged by the digest of what the publisher sent (`envelope.digest`): equal is a
repeat and answered as the first time, different is a conflict.
"""

from __future__ import annotations

import re
from typing import Literal

from surehook.core import ids, limits
from surehook.core.errors import Problem

Judgement = Literal["new", "repeat", "conflict"]

_KEY = re.compile(rf"[\x21-\x7e]{{1,{limits.IDEMPOTENCY_KEY_CHARS}}}", re.ASCII)


def judge(known: bytes | None, digest: bytes) -> Judgement:
    """Judge a message with `digest` where the ledger has `known` (None: nothing) under the same key."""
    if known is None:
        return "new"
    return "repeat" if known == digest else "conflict"


def check_key(key: str, *, field: str = "Idempotency-Key") -> str:
    """The key itself: 1 to 255 visible ASCII characters. Raises Problem `invalid_idempotency_key`."""
    if _KEY.fullmatch(key) is None:
        raise Problem(
            "invalid_idempotency_key",
            f"an idempotency key is 1 to {limits.IDEMPOTENCY_KEY_CHARS} visible ASCII characters",
            field=field,
        )
    return key


def check_event_id(event_id: bytes, *, now_ms: int, retention_ms: int, field: str = "id") -> None:
    """Refuse an id whose repeats could not be told. Raises Problem `event_id_ahead` or `event_id_too_old`.

    `retention_ms` is how long events are kept; the time of an id is in its first bits.
    """
    at = ids.millis(event_id)
    if at > now_ms + limits.EVENT_ID_AHEAD_S * 1000:
        raise Problem(
            "event_id_ahead",
            f"the id's time is more than {limits.EVENT_ID_AHEAD_S} s ahead of this clock",
            field=field,
            hint="check the publisher's clock",
        )
    if at < now_ms - retention_ms:
        raise Problem(
            "event_id_too_old",
            "the id is older than events are kept, so a repeat could not be told from a new event",
            field=field,
            hint="publish under a new id",
        )


def conflict(key: str, *, field: str = "Idempotency-Key") -> Problem:
    """The answer to another body under a known Idempotency-Key, or `idempotency_key` of an item in a batch."""
    return Problem(
        "idempotency_conflict",
        "this key was used with another body",
        field=field,
        hint=f"one key names one event; {key[:64]!r} is taken for at least 24 hours",
        status=409,
    )


def id_conflict() -> Problem:
    """The answer to another body, or another tenant, under a known event id."""
    return Problem(
        "event_id_conflict",
        "this id was used for another event",
        field="id",
        hint="make a new id",
        status=409,
    )
