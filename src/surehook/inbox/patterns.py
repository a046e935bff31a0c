"""Patterns of event types: `*`, a type, or the beginning of one with `.*`."""

from __future__ import annotations

from surehook.core.errors import SettingsError


def check_pattern(pattern: str) -> str:
    """Check a pattern: `*`, a type, or the beginning of one with `.*`. Raises SettingsError."""
    if (
        not isinstance(pattern, str)
        or not pattern
        or ("*" in pattern and pattern != "*" and (not pattern.endswith(".*") or "*" in pattern[:-1]))
    ):
        raise SettingsError("pattern", f"{pattern!r} is not a type", hint="document.signed, document.*, *")
    return pattern


def matches(pattern: str, type: str | None) -> bool:
    if pattern == "*":
        return True
    if type is None:
        return False
    return type.startswith(pattern[:-1]) if pattern.endswith(".*") else type == pattern
