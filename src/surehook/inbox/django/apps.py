"""The app: its label names the tables, and the modules with handlers are imported when all apps are there."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class InboxConfig(AppConfig):
    """`surehook.inbox.django` in INSTALLED_APPS."""

    name = "surehook.inbox.django"
    label = "surehook_inbox"
    verbose_name = "Inbox"

    def ready(self) -> None:
        from surehook.inbox.django.settings import given

        settings = given()
        if settings.modules:
            autodiscover_modules(settings.modules)
