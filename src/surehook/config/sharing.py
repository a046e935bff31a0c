"""Settings of roles and processes that do not go together."""

from __future__ import annotations

from surehook.config.settings import Settings
from surehook.core.errors import SettingsError


def check_sharing(settings: Settings) -> None:
    """Refuse a division of the work among processes that these settings cannot have. Raises SettingsError."""
    if settings.lane != "both" and settings.role != "worker":
        raise SettingsError(
            "lane", f"a process of role {settings.role} has both lanes or none", hint="--role worker --lane …"
        )
    if settings.is_sqlite and settings.broker_url is not None:
        raise SettingsError(
            "broker_url",
            "a broker brings work to other processes, and SQLite serves one process",
            hint="SUREHOOK_DATABASE_URL=postgresql://USER@HOST/DATABASE, or leave it out",
        )
    if settings.is_sqlite and settings.database_schema is not None:
        raise SettingsError("database_schema", "SQLite has no schemas", hint="leave it out")
    for name, alone in (("role", "all"), ("processes", 1), ("redis_url", None)):
        if settings.is_sqlite and getattr(settings, name) != alone:
            raise SettingsError(
                name,
                f"{settings.shown(name)} needs a ledger that processes can share, and SQLite serves one process",
                hint="SUREHOOK_DATABASE_URL=postgresql://USER@HOST/DATABASE, or leave it out",
            )
