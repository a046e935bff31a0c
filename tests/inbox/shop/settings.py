"""The settings of the application, for tests in this process and for commands in others."""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import make_url

from surehook.inbox import sources
from tests.inbox.house import SECRET

BACKENDS = {"sqlite": "sqlite3", "postgresql": "postgresql", "mariadb": "mysql"}


def database(url: str, **choices: Any) -> dict[str, Any]:
    """A URL as Django writes it."""
    where = make_url(url)
    return {
        "ENGINE": f"django.db.backends.{BACKENDS[where.get_backend_name()]}", "NAME": where.database,
        "USER": where.username or "", "HOST": where.host or "", "PORT": str(where.port or ""), **choices,
    }  # fmt: skip


DATABASES = {"default": database(os.environ.get("SHOP_DATABASE", "sqlite:///:memory:"))}
INSTALLED_APPS = ["surehook.inbox.django", "tests.inbox.shop"]
MIDDLEWARE = ["django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware"]
SUREHOOK_INBOX = {"sources": [sources.named("standard", name="partner", secret=SECRET)]}
ROOT_URLCONF = "tests.inbox.shop.urls"
SECRET_KEY = "a key of tests"
ALLOWED_HOSTS = ["testserver", "127.0.0.1"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LOGGING_CONFIG = None
USE_TZ = True
