"""Reasons why a server does not start on its ledger: a setting, or a full disk."""

from __future__ import annotations

from surehook.config import Settings
from surehook.core.errors import LedgerError, LedgerFull, SettingsError, SurehookError
from surehook.ports.reading import Room

FULL_BYTES = 1 << 20  # with less free disk, an error of SQLite is taken for a full disk


def unopened(settings: Settings, room: Room | None, error: LedgerError) -> SurehookError:
    """The error to raise: SettingsError if the database cannot be opened, LedgerFull if it only lacks disk."""
    if isinstance(error, LedgerFull) or (room is not None and room.free_bytes < FULL_BYTES):
        where = f" of {settings.database_path.absolute()}" if settings.is_sqlite else ""
        free = "" if room is None else f", {room.free_bytes:,} bytes are free"
        return LedgerFull(f"the disk{where} is full{free} ({error})")
    return SettingsError("database_url", f"{settings.shown('database_url')} cannot be opened: {error}")
