"""The tables as they were when the app began."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from surehook.inbox.django.operations import MakeTables


class Migration(migrations.Migration):
    """A table that comes later has a migration of its own."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[MakeTables]] = [
        MakeTables("requests", "events", "runs", "conflicts", "documents", "steps")
    ]
