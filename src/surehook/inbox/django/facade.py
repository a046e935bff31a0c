"""`Inbox`, as Django wants it: on a database by its alias, with a view, its threads' connections closed at their end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar, Unpack

from django.db import router
from django.db.backends.base.base import BaseDatabaseWrapper

from surehook.core.effects import Script
from surehook.core.errors import SettingsError
from surehook.inbox.backoff import Backoff
from surehook.inbox.definitions import Definitions
from surehook.inbox.django.models import Events
from surehook.inbox.django.settings import NAME, given
from surehook.inbox.django.store import DjangoStore
from surehook.inbox.django.view import View, view_of
from surehook.inbox.event import Event
from surehook.inbox.group_commit import GroupCommit
from surehook.inbox.handlers import HandlerOptions, Returned
from surehook.inbox.inbox import Inbox as Blocking
from surehook.inbox.queue.option import Queue
from surehook.inbox.receive import no_source
from surehook.inbox.retention import Keep
from surehook.inbox.rules import Rules
from surehook.inbox.sources.source import Source
from surehook.inbox.sql.transaction_deadlines import STORE_S
from surehook.ports.clock import Clock
from surehook.ports.entropy import Entropy
from surehook.ports.inbox import Transaction

T = TypeVar("T")
DjangoHandler = TypeVar("DjangoHandler", bound=Callable[[Event, BaseDatabaseWrapper], Returned])


class _Durable:
    """The store as group commit uses it: what it wrote is committed, or it was not written."""

    def __init__(self, store: DjangoStore) -> None:
        self._store = store

    def run(self, work: Callable[[Transaction], T]) -> T:
        return self._store.durable(work, STORE_S)


class Inbox(Blocking):
    """An inbox in a database of Django. Handlers are ordinary functions, called inside `transaction.atomic(using=tx.alias)`.

    sources, backoff, rules, keep, queue  as for every inbox
    using                                 the alias of the database; None: where DATABASE_ROUTERS write the inbox's models
    """

    def __init__(
        self,
        sources: Iterable[Source] = (),
        *,
        using: str | None = None,
        backoff: Backoff | None = None,
        rules: Rules | None = None,
        keep: Keep | None = None,
        queue: Queue | str | None = None,
        clock: Clock | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        store = DjangoStore(using or router.db_for_write(Events))
        super().__init__(
            store, sources, backoff=backoff, rules=rules, keep=keep, queue=queue, clock=clock, entropy=entropy
        )
        self.alias = store.alias
        self.let_go, self._own_thread = store.let_go, store.own_thread
        self._group_commit = GroupCommit(_Durable(store), self.clock.boot)
        self.view: View = view_of(self.receiver, self.receive, store.alias)

    @classmethod
    def of_settings(cls) -> Inbox:
        """The inbox that SUREHOOK_INBOX describes. Raises ImproperlyConfigured."""
        it = given()
        return cls(
            it.sources, using=it.using, backoff=it.backoff, rules=it.rules, keep=it.keep, queue=it.queue
        )

    if not TYPE_CHECKING:

        def __call__(self, *_: object, **__: object) -> None:
            """Refuse to be called as a view. Raises SettingsError."""
            raise SettingsError(
                "inbox", "an Inbox is no view of its own", hint="path('hooks/<str:source>', inbox.view)"
            )

    def on(  # type: ignore[override]  # its `tx` is Django's
        self, source: str, pattern: str = "*", **options: Unpack[HandlerOptions]
    ) -> Callable[[DjangoHandler], DjangoHandler]:
        return Definitions.on(self, source, pattern, **options)

    def on_undo(  # type: ignore[override]  # likewise
        self, source: str, pattern: str = "*", *, name: str | None = None, timeout_s: float | None = None
    ) -> Callable[[DjangoHandler], DjangoHandler]:
        return Definitions.on_undo(self, source, pattern, name=name, timeout_s=timeout_s)

    on.__doc__, on_undo.__doc__ = Definitions.on.__doc__, Definitions.on_undo.__doc__

    def _no_source(self, name: str) -> SettingsError:
        where = f"there are none yet: list them in {NAME}['sources'], or add(source) comes first"
        return no_source(name, self.receiver.sources, where)

    def run_worker(self, script: Script[None]) -> None:
        with self._own_thread():
            super().run_worker(script)

    def close(self) -> None:
        """Stop the workers and let go of the writing thread's connection; the caller's own is Django's."""
        self.stop()
        if self._executor is not None:
            self._executor.submit(self.let_go).result()
        super().close()
