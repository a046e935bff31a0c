"""One setting: its kind, unit and meaning, declared beside its type and default in `settings.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, fields
from typing import TypeVar, cast

from msgspec import Struct

from surehook.config.kinds import SettingKind

PREFIX = "SUREHOOK_"
D = TypeVar("D")
T = TypeVar("T")


class Setting(Struct, frozen=True):
    """One line of the list; docs/configuration.md gives the reason of each default."""

    name: str
    kind: SettingKind[object]
    unit: str
    meaning: str
    secret: bool = False

    @property
    def variable(self) -> str:
        """The name in the environment."""
        return PREFIX + self.name.upper()

    def shown(self, value: object) -> str:
        """A value as people may see it: secrets are redacted, an absent value is empty."""
        if value is None:
            return ""
        text = self.kind.show(value)
        return f"(set, {len(text)} characters)" if self.secret else text


def setting(default: D, kind: SettingKind[T], unit: str, meaning: str, *, secret: bool = False) -> T | D:
    """Declare a field of a dataclass as a setting, with a value where nothing is given."""
    declared = {"kind": kind, "unit": unit, "meaning": meaning, "secret": secret}
    # A dataclass wants a factory for what can be changed; nobody changes a default.
    return cast("T | D", field(default_factory=lambda: default, metadata=declared))


def declared(settings: type) -> Mapping[str, Setting]:
    """The settings among the fields of a dataclass, by name, in its order."""
    return {each.name: Setting(each.name, **each.metadata) for each in fields(settings) if each.metadata}
