"""Instants and durations: whole Unix milliseconds inside, RFC 3339 UTC with milliseconds outside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from surehook.core.errors import Problem

SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1_000, 60_000, 3_600_000, 86_400_000

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WRITTEN = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)", re.ASCII)
_UNIT_MS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS, "w": 7 * DAY_MS}
_second, _second_text = -1, ""


def render(instant_ms: int) -> str:
    """`2026-11-21T10:46:00.123Z`. The part before the milliseconds is remembered for the current second."""
    global _second, _second_text
    second, ms = divmod(instant_ms, 1000)
    if second != _second:
        _second_text = (_EPOCH + timedelta(seconds=second)).strftime("%Y-%m-%dT%H:%M:%S")
        _second = second
    return f"{_second_text}.{ms:03d}Z"


def render_optional(instant_ms: int | None) -> str | None:
    return None if instant_ms is None else render(instant_ms)


def parse(written: str, *, field: str | None = None) -> int:
    """Unix milliseconds of an RFC 3339 instant (finer fractions are dropped).

    Raises Problem `bad_time` for anything else, leap seconds and years before 1970 included.
    """
    match = _WRITTEN.fullmatch(written)
    if match is None:
        raise _bad(field)
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    try:
        at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        raise _bad(field) from None
    zone = match[8]
    offset = 0
    if zone not in "Zz":
        hours, minutes = int(zone[1:3]), int(zone[4:6])
        if hours > 23 or minutes > 59:
            raise _bad(field)
        offset = (hours * 60 + minutes) * MINUTE_MS * (1 if zone[0] == "+" else -1)
    fraction = int((match[7] or "0").ljust(3, "0")[:3])
    whole = (at - _EPOCH) // timedelta(milliseconds=1) + fraction - offset
    if whole < 0:
        raise _bad(field)
    return whole


def parse_duration(written: str, *, field: str | None = None) -> int:
    """Milliseconds of `250ms`, `2s`, `5m`, `6h`, `7d`, `1h30m` or a bare number of seconds."""
    try:
        return round(float(written) * SECOND_MS)
    except ValueError:
        pass
    at, total = 0, 0.0
    while at < len(written):
        match = _DURATION.match(written, at)
        if match is None:
            break
        total += float(match[1]) * _UNIT_MS[match[2]]
        at = match.end()
    if at == 0 or at != len(written):
        raise Problem(
            "bad_duration",
            f"{written!r} is not a duration",
            field=field,
            hint="such as 500ms, 30s, 5m, 6h, 7d",
        )
    return round(total)


def say(duration_ms: float) -> str:
    """A duration for people: `32s`, `1h 14m`, `3d 0h`."""
    seconds = int(duration_ms // 1000)
    if seconds < 60:
        return f"{seconds}s" if duration_ms % 1000 == 0 or seconds >= 10 else f"{duration_ms / 1000:.1f}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60}s" if seconds % 60 else f"{seconds // 60}m"
    if seconds < 86400:
        return f"{seconds // 3600}h {seconds % 3600 // 60}m"
    return f"{seconds // 86400}d {seconds % 86400 // 3600}h"


def _bad(field: str | None) -> Problem:
    return Problem(
        "bad_time", "not an RFC 3339 instant", field=field, hint="such as 2026-11-21T10:46:00.000Z"
    )
