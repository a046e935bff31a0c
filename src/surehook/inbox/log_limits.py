"""Limits on log lines: once in so many seconds for each key, so many a second, so many characters."""

from __future__ import annotations

from collections.abc import Callable, Hashable

KEYS_MOST = 1_000
TEXT_MOST = 8_000  # characters of a traceback or of an error: an exception may quote a whole body
# What would move a terminal's cursor or change its colours.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def log_text(text: str) -> str:
    """Shorten a text of an application's for the log, in its middle, and write control characters as escapes."""
    text = text.rstrip()
    if len(text) > TEXT_MOST:
        half = TEXT_MOST // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters left out …\n{text[-half:]}"
    return text.translate(_CONTROL)


class OncePer:
    """A limit of one line per key and interval. `boot` counts seconds. Keys beyond `KEYS_MOST` share one interval."""

    def __init__(self, boot: Callable[[], float], every_s: float) -> None:
        self._boot = boot
        self._every_s = every_s
        self._said: dict[Hashable, float] = {}

    def may(self, key: Hashable) -> bool:
        """Tell whether it is time to log it again; then it counts as logged."""
        now = self._boot()
        if key not in self._said and len(self._said) >= KEYS_MOST:
            self._said = {one: at for one, at in self._said.items() if now - at < self._every_s}
            if len(self._said) >= KEYS_MOST:
                key = None
        before = self._said.get(key)
        if before is not None and 0 <= now - before < self._every_s:
            return False
        self._said[key] = now
        return True


class LinesPerSecond:
    """A limit of lines per second, with a count of those left out. `boot` counts seconds."""

    def __init__(self, boot: Callable[[], float], most: int) -> None:
        self._boot = boot
        self._most = most
        self._second = 0.0
        self._count = self._left_out = 0

    def may(self) -> int | None:
        """Return how many lines were left out since the last, if one more may be logged now; else None."""
        now = self._boot()
        if not 0 <= now - self._second < 1:
            self._second, self._count = now, 0
        if self._count >= self._most:
            self._left_out += 1
            return None
        self._count += 1
        left_out, self._left_out = self._left_out, 0
        return left_out

    def rest(self, *, at_end: bool = False) -> int:
        """Return how many lines were left out and not told of, once their second is over, or at the end: no further line may come
        that would tell. Then they count as told."""
        if not self._left_out or (0 <= self._boot() - self._second < 1 and not at_end):
            return 0
        left_out, self._left_out = self._left_out, 0
        return left_out
