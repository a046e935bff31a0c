"""Tenants and event types that changed since a version: nothing else that was made from memory then is made anew."""

from __future__ import annotations

NAMES_KEPT = 10_000  # names remembered, about 150 bytes each; whoever asks about older versions is told yes


class Changed:
    """The version of each name's last change, the latest last."""

    def __init__(self) -> None:
        self._tenants: dict[str, int] = {}
        self._types: dict[str, int] = {}
        self._floor = -1  # anything may have changed up to here

    def tenant(self, name: str, version: int) -> None:
        self._note(self._tenants, name, version)

    def event_type(self, name: str, version: int) -> None:
        self._note(self._types, name, version)

    def all(self, version: int) -> None:
        """Nobody can say what changed before this version."""
        self._floor = version

    def since(self, version: int, tenant: str, event_type: str) -> bool:
        """True where the fan-out of such an event, or what is said against it, may be another than at `version`."""
        return (
            version < self._floor
            or self._tenants.get(tenant, -1) > version
            or self._types.get(event_type, -1) > version
        )

    def _note(self, kept: dict[str, int], name: str, version: int) -> None:
        kept.pop(name, None)
        kept[name] = version
        if len(kept) > NAMES_KEPT:
            oldest = next(iter(kept))
            self._floor = max(self._floor, kept.pop(oldest))
