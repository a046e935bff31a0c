"""The tables of version 1."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from surehook.inbox.django.operations import MakeTables
from surehook.inbox.sql.versions import CAME


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[MakeTables]] = [MakeTables(*CAME[1])]
