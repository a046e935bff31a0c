"""Times as people write and read them: RFC 3339, or a duration back from now; shown in local time."""

from __future__ import annotations

import time
from datetime import datetime

from surehook.cli.errors import USAGE, CommandError
from surehook.core.errors import Problem
from surehook.core.instants import parse, parse_duration, render, say


def clock_ms() -> int:
    """Now, in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def instant_ms(written: str) -> int:
    """`2026-11-21T10:46:00Z`, or `6h`: that long ago."""
    try:
        if written.strip().isdigit():
            raise ValueError("seconds, minutes, days? The unit is missing")
        return parse(written) if "T" in written.upper() else clock_ms() - parse_duration(written)
    except (Problem, OverflowError, ValueError):
        raise CommandError(
            f"{written!r} is not a time",
            hint="such as 2026-11-21T10:46:00Z, or 90s, 30m, 6h, 7d ago",
            code=USAGE,
        ) from None


def instant(written: str | None) -> str | None:
    """The RFC 3339 form of what `instant_ms` understands."""
    return None if written is None else render(instant_ms(written))


def span(since: str | None, until: str | None) -> dict[str, str | None]:
    """Both ends of a filter by time. Raises CommandError where they are out of order."""
    if since is not None and until is not None and instant_ms(since) >= instant_ms(until):
        raise CommandError(
            f"--since {since} is not before --until {until}",
            hint="durations count back from now: --since 2h --until 30m",
            code=USAGE,
        )
    return {"since": instant(since), "until": instant(until)}


def duration_s(written: str) -> float:
    """Seconds of `250ms`, `2s`, `5m`, `6h`, or a bare number of seconds."""
    try:
        seconds = parse_duration(written) / 1000
    except (Problem, OverflowError, ValueError):
        seconds = -1
    if seconds < 0:
        raise CommandError(
            f"{written!r} is not a duration", hint="such as 500ms, 30s, 5m, 6h, 7d", code=USAGE
        )
    return seconds


def age(ms: int) -> str:
    """`45s`, `12m`, `3h`, `5d`: how long ago, in one unit."""
    seconds = max(0, ms) // 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def coming(written: str | None) -> str:
    """`in 4m 10s`, `now`: how long until then; empty for None."""
    if written is None:
        return ""
    left_ms = parse(written) - clock_ms()
    return f"in {say(left_ms // 1000 * 1000)}" if left_ms >= 1000 else "now"


def local(written: str | None) -> str:
    """`2026-11-21 11:46:00.123`, in the zone of this machine; empty for None."""
    if written is None:
        return ""
    at = datetime.fromisoformat(written).astimezone()
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03d}"
