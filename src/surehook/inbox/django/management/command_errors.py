"""Errors of the inbox as those of a command, which Django shows without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from surehook.core.errors import SurehookError


@contextmanager
def told() -> Iterator[None]:
    """Raises CommandError for what the inbox raises on purpose."""
    try:
        yield
    except SurehookError as error:
        raise CommandError(str(error)) from error
