"""The tables of version 2: failed attempts."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from surehook.inbox.django.operations import MakeTables
from surehook.inbox.sql.versions import CAME


class Migration(migrations.Migration):
    dependencies: ClassVar[list[tuple[str, str]]] = [("surehook_inbox", "0001_initial")]
    operations: ClassVar[list[MakeTables]] = [MakeTables(*CAME[2])]
