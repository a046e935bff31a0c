"""Why a server does not start on its ledger: a setting, or a disk without room."""

from __future__ import annotations

from surehook.config import Settings
from surehook.core.errors import LedgerError, LedgerFull, SettingsError, SurehookError
from surehook.ports.reading import Room

FULL_BYTES = 1 << 20  # with less free disk, whatever SQLite says of a file it cannot open is said of the disk


def unopened(settings: Settings, room: Room | None, error: LedgerError) -> SurehookError:
    """What to raise. SettingsError: the database cannot be opened. LedgerFull: it can, when there is room."""
    if isinstance(error, LedgerFull) or (room is not None and room.free_bytes < FULL_BYTES):
        where = f" of {settings.database_path.absolute()}" if settings.is_sqlite else ""
        free = "" if room is None else f", {room.free_bytes:,} bytes are free"
        return LedgerFull(f"the disk{where} is full{free} ({error})")
    return SettingsError("database_url", f"{settings.shown('database_url')} cannot be opened: {error}")
