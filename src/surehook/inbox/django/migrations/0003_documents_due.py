"""The index of version 3: documents by type and by when they are due."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from surehook.inbox.django.operations import MakeIndexes
from surehook.inbox.sql.versions import INDEXES


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("surehook_inbox", "0002_tries")]
    operations: ClassVar[list[MakeIndexes]] = [MakeIndexes(*INDEXES[3])]
