"""The app: its label is that of its migrations."""

from __future__ import annotations

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    """`surehook.outbox.django` in INSTALLED_APPS."""

    name = "surehook.outbox.django"
    label = "surehook_outbox"
    verbose_name = "Outbox"
