"""`Retry-After` (RFC 9110 section 10.2.3): whole seconds, or one of the three HTTP date forms.

Anything else is ignored, and so are two values, since nothing says which one is meant. The only cap here is
`limits.RETRY_AFTER_S`; the caller applies that of the policy.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from surehook.core import limits

_SECONDS = re.compile(r"[0-9]+", re.ASCII)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATES = tuple(
    re.compile(form, re.ASCII)
    for form in (
        # IMF-fixdate, RFC 850, asctime (RFC 9110 section 5.6.7)
        r"\w{3}, (?P<d>\d\d) (?P<m>\w{3}) (?P<y>\d{4}) (?P<t>\d\d:\d\d:\d\d) GMT",
        r"\w{6,9}, (?P<d>\d\d)-(?P<m>\w{3})-(?P<y>\d\d) (?P<t>\d\d:\d\d:\d\d) GMT",
        r"\w{3} (?P<m>\w{3}) (?P<d>[ \d]\d) (?P<t>\d\d:\d\d:\d\d) (?P<y>\d{4})",
    )
)
_LINE = re.compile(rb"^retry-after[ \t]*:([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def from_headers(header_lines: bytes, now_ms: int) -> float | None:
    """Seconds from now until the retry that an answer's header lines ask for, or None."""
    found = _LINE.findall(header_lines)
    return parse(found[0], now_ms) if len(found) == 1 else None


def parse(header_value: bytes | str, now_ms: int) -> float | None:
    """Seconds from `now_ms`, 0 for a date that has passed, None for what is neither a number nor a date."""
    text = header_value.decode("latin-1") if isinstance(header_value, bytes) else header_value
    text = text.strip(" \t")
    if _SECONDS.fullmatch(text):
        return float(min(int(text), limits.RETRY_AFTER_S) if len(text) <= 12 else limits.RETRY_AFTER_S)
    for form in _DATES:
        match = form.fullmatch(text)
        if match is not None:
            return _until(match, now_ms)
    return None


def _until(match: re.Match[str], now_ms: int) -> float | None:
    if match["m"] not in _MONTHS:
        return None
    year = int(match["y"])
    if len(match["y"]) == 2:
        year = _century(year, now_ms)
    hour, minute, second = (int(part) for part in match["t"].split(":"))
    try:
        at = datetime(
            year, _MONTHS.index(match["m"]) + 1, int(match["d"]), hour, minute, min(second, 59), tzinfo=UTC
        )
    except ValueError:
        return None
    return min(max(0.0, at.timestamp() - now_ms / 1000), float(limits.RETRY_AFTER_S))


def _century(year: int, now_ms: int) -> int:
    """RFC 9110: a two-digit year more than 50 years ahead is the most recent year in the past with those digits."""
    this = datetime.fromtimestamp(now_ms / 1000, tz=UTC).year
    full = this - this % 100 + year
    return full - 100 if full > this + 50 else full
