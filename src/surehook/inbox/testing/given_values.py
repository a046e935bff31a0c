"""Values that a test gives: refused where they are given if they are of another type, and not by what they break later."""

from __future__ import annotations

from surehook.core.errors import SettingsError


def check(field: str, value: object, kinds: type | tuple[type, ...], hint: str) -> None:
    """Raise SettingsError for a value that is neither None nor of these types."""
    if value is None or isinstance(value, kinds):
        return
    given = f"the class {value.__name__}" if isinstance(value, type) else f"of {type(value).__name__}"
    wanted = " or ".join(one.__name__ for one in (kinds if isinstance(kinds, tuple) else (kinds,)))
    raise SettingsError(field, f"a value of {wanted}, and not {given}", hint=hint)
