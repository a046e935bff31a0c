"""The tables of an outbox."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from surehook.outbox.django.operations import MakeOutbox


class Migration(migrations.Migration):
    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations: ClassVar[list[MakeOutbox]] = [MakeOutbox()]
