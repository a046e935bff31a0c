"""SUREHOOK_INBOX: what an inbox of Django is told by its settings."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from msgspec import Struct

from surehook.core.meant import meant
from surehook.inbox.backoff import Backoff
from surehook.inbox.queue.option import Queue
from surehook.inbox.retention import Keep
from surehook.inbox.rules import Rules
from surehook.inbox.sources.source import Source

NAME = "SUREHOOK_INBOX"


class Given(Struct, frozen=True, forbid_unknown_fields=True):
    """The settings that may be given, with their defaults.

    sources  who may send, see `surehook.inbox.sources`
    using    the alias of the database; None: where DATABASE_ROUTERS write the inbox's models
    modules  the module of each app in which handlers are, imported when Django starts; None: none
    backoff  how failed events are tried again
    rules    how workers work
    keep     how long finished events are kept; None: as `prune` is told
    queue    a queue in front of the table: its URL, or a `Queue`; None: none
    """

    sources: Sequence[Source] = ()
    using: str | None = None
    modules: str | None = "webhooks"
    backoff: Backoff | None = None
    rules: Rules | None = None
    keep: Keep | None = None
    queue: Queue | str | None = None


def given() -> Given:
    """The setting, or its defaults. Raises ImproperlyConfigured."""
    values: object = getattr(settings, NAME, {})
    if not isinstance(values, dict):
        raise ImproperlyConfigured(f"{NAME} is a dict")
    unknown = sorted(set(values) - set(Given.__struct_fields__))
    if unknown:
        known = ", ".join(Given.__struct_fields__)
        raise ImproperlyConfigured(f"{NAME} has no {unknown[0]!r}; it may have {known}")
    made = Given(**values)
    if not all(isinstance(one, Source) for one in made.sources):
        raise ImproperlyConfigured(f"{NAME}['sources'] is a list of what surehook.inbox.sources makes")
    if made.using is not None and made.using not in connections:
        near = meant(str(made.using), list(connections), "aliases")
        raise ImproperlyConfigured(
            f"{NAME}['using'] is {made.using!r}, and DATABASES has no such alias; {near}"
        )
    return made
