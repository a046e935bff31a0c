"""All tables that this version has."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from surehook.inbox.django.operations import MakeTables
from surehook.inbox.sql import described


class Migration(migrations.Migration):
    """A table that comes in a later version needs a migration that names it, for databases that are older than that."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[MakeTables]] = [MakeTables(*described.names())]
