"""Errors of the inbox as those of a command, which Django shows without a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.core.management.base import CommandError

from surehook.core.errors import SurehookError
from surehook.inbox.document_commands import UnknownDocument

NOT_FOUND = 4  # the exit codes of `surehook inbox`
NOT_MET = 7


@contextmanager
def told() -> Iterator[None]:
    """Raises CommandError for what the inbox raises on purpose."""
    try:
        yield
    except UnknownDocument as error:
        raise CommandError(error.detail, returncode=NOT_FOUND) from error
    except SurehookError as error:
        raise CommandError(str(error)) from error
