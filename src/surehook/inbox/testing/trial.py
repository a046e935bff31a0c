"""An inbox in a test's hands: its clock is moved by hand, its process dies when the test says so, its database stays.

A trial has the definitions of an application's inbox (sources, handlers, workflows, backoff, rules) on a database of the
test's. Nothing runs by itself: what was received waits until `work()`. Calls block, also for an `AsyncInbox`, whose handlers
run in a loop of their own; so tests may be ordinary functions or coroutines.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import wraps
from itertools import count
from typing import Any, TypedDict, TypeVar, Unpack, cast

from msgspec import structs

from surehook.core.errors import SettingsError, SurehookError
from surehook.core.sources.provider import Reply
from surehook.core.workflow.decide import Table
from surehook.inbox import AsyncInbox, Inbox
from surehook.inbox.event import Event
from surehook.inbox.failures import Failure
from surehook.inbox.handlers import HandlerOptions
from surehook.inbox.operations import EventQuery, EventRow
from surehook.inbox.receive import no_source
from surehook.inbox.sources.source import Source
from surehook.inbox.sql import engines
from surehook.inbox.testing.given_values import check
from surehook.inbox.testing.sending import Message, Sender
from surehook.inbox.transitions import Transition
from surehook.inbox.workflow import Workflow
from surehook.ports.inbox import Transaction

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., object])

BEGIN_MS = 1_767_268_800_000  # 2026-01-01T12:00:00Z: every run of a test has the same times


class Clock:
    """`ports.Clock`; time passes when a test says so."""

    def __init__(self, at_ms: int = BEGIN_MS) -> None:
        self.at_ms = at_ms

    def now(self) -> int:
        return self.at_ms

    def boot(self) -> float:
        return self.at_ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.passes(seconds)

    def passes(self, seconds: float) -> None:
        self.at_ms += round(seconds * 1000)


class HandlerFailed(SurehookError, AssertionError):
    """A handler failed in a test that did not expect it. `failures` are all of them (`inbox.failures.Failure`)."""

    def __init__(self, failures: Sequence[Failure]) -> None:
        first = failures[0]
        more = f"\n… and {len(failures) - 1} more failures" if len(failures) > 1 else ""
        super().__init__(
            f"{first.event_id} ({first.type}) of {first.source}: {first.code}, attempt {first.attempt}"
            f"; work(raises=False) goes on\n{first.error.rstrip()}{more}"
        )
        self.failures = list(failures)


class _OfDocument(TypedDict, total=False):
    """The document that a command is for, where its id does not say it all."""

    document_type: str | None
    tenant: str


class _Died(BaseException):
    """The process ended here."""


class Trial:
    """An inbox on `url`, an empty database whose tables are made here.

    definitions  the application's `Inbox` or `AsyncInbox`, which is not touched; None: an empty `Inbox`
    sources      further sources

    clock        of the inbox, and of those who sign for it
    calls        by event id, how often handlers were called, also in vain
    effects      by event id, how often what handlers did was committed
    """

    def __init__(
        self, url: str, definitions: Inbox | AsyncInbox | None = None, sources: Iterable[Source] = ()
    ) -> None:
        check("definitions", definitions, (Inbox, AsyncInbox), "Trial(url, inbox), the application's own")
        check("sources", sources, Iterable, "Trial(url, inbox, [sources.named(…)])")
        self.clock = Clock()
        self.calls: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()
        self._url = url
        self._loop = _Loop() if isinstance(definitions, AsyncInbox) else None
        self._numbers = count(1)
        self._definitions = definitions
        self._failed: list[Failure] = []
        self._own: list[Callable[[Inbox | AsyncInbox], object]] = []
        self._wrappers: list[tuple[Callable[..., object], Callable[..., object]]] = []
        self.inbox = self._made()
        for source in sources:
            self.add(source)
        self._do(self.inbox.create_tables())

    def __enter__(self) -> Trial:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        self._do(self.inbox.close())
        if self._loop is not None:
            self._loop.close()

    # -- in ---------------------------------------------------------------------------------------------------

    def sign(
        self,
        source: str,
        type: str | None = None,
        data: object = None,
        *,
        id: str | None = None,
        body: bytes | None = None,
        secret: str | None = None,
        url: str | None = None,
        headers: dict[str, str] | None = None,
        **fields: object,
    ) -> Message:
        """A message as the sender of this source would send it now.

        id      the event id; None: the next of `evt_1`, `evt_2`, …
        data    the business data, where the provider has it; `fields` stand beside it in the body (`subject="doc_1"`)
        body    the whole body instead, byte for byte
        secret  to sign with, in place of the source's own; a private key (PEM) where the source has a public one
        url     as the sender calls it, where it is signed

        Raises SettingsError for a source that is not there.
        """
        for field, text in (("source", source), ("type", type), ("id", id), ("url", url)):
            check(field, text, str, 'sign("stripe", "invoice.paid", id="evt_1")')
        check("body", body, bytes, 'body=b"{…}", byte for byte; data= is written as the provider does')
        check("headers", headers, dict, 'headers={"name": "value"}')
        sources = self.inbox.receiver.sources
        if source not in sources:
            raise no_source(source, sources)
        found = sources[source]
        sender = Sender.to(found, at=self._seconds(), secret=secret, url=url)
        wanted = sender.wanted(self._numbers, id, type, data, body, headers, fields)
        return sender.message(wanted, at=self._seconds())

    def send(self, message: Message) -> Reply:
        """The answer to one request: `status`, `body`, `headers`."""
        if not isinstance(message, Message):
            raise SettingsError("message", "what sign() has made", hint='trial.send(trial.sign("stripe", …))')
        call = message.call()
        early = self.inbox.receiver.before_body(call, len(call.body))
        return early if early is not None else self._do(self.inbox.receive(call))

    # -- definitions of the test's own -------------------------------------------------------------------------

    def add(self, source: Source) -> None:
        """As `Inbox.add`."""
        self._define(lambda inbox: inbox.add(source))

    def on(self, source: str, pattern: str = "*", **choices: Unpack[HandlerOptions]) -> Callable[[F], F]:
        """As `Inbox.on`."""

        def define(function: F) -> F:
            self._define(lambda inbox: inbox.on(source, pattern, **choices)(self._counting(function)))
            return function

        return define

    def on_undo(self, source: str, pattern: str = "*") -> Callable[[F], F]:
        """As `Inbox.on_undo`."""

        def define(function: F) -> F:
            undoes = cast("Callable[..., None]", function)
            self._define(lambda inbox: inbox.on_undo(source, pattern)(undoes))
            return function

        return define

    def follow(self, workflow: Workflow | Table, source: str, pattern: str = "*") -> None:
        """As `Inbox.follow`."""
        self._define(lambda inbox: inbox.follow(workflow, source, pattern))

    def _define(self, step: Callable[[Inbox | AsyncInbox], object]) -> None:
        """Remembered, as a process that begins again defines it again."""
        step(self.inbox)
        self._own.append(step)

    # -- handlers ---------------------------------------------------------------------------------------------

    def work(self, *, raises: bool = True) -> int:
        """Process what is due, until nothing is; how many turns it took. Raises HandlerFailed where attempts failed, after
        all is done; not with `raises=False`, for a test of what follows."""
        self._failed.clear()
        turns = self._do(self.inbox.work())
        if raises and self._failed:
            raise HandlerFailed(self._failed)
        return turns

    # -- what may happen to a process --------------------------------------------------------------------------

    def restart(self) -> None:
        """The process ends as by `kill -9`, and another one begins: memory is lost, the database is there."""
        before, self.inbox = self.inbox, self._made()
        self._do(before.close())

    def die_before_commit(self) -> None:
        """Process what is due, end before the commit, and begin again. What was claimed waits for its lease to lapse."""
        transactions, token = self.inbox.transactions, self.inbox.transactions.token()
        claimed = self._do(self.inbox.store.run(transactions.claim_work(token)))

        def work(transaction: Transaction) -> None:
            transactions.process_work(claimed.runs, token, claimed.leased)(transaction)
            raise _Died

        try:
            self._do(self.inbox.store.run(work))
        except _Died:
            self.restart()

    @property
    def lease_s(self) -> float:
        """After so many seconds the work of a process that died is taken up."""
        return self.inbox.rules.lease_ms / 1000

    # -- looks ------------------------------------------------------------------------------------------------

    def states(self) -> dict[str, str]:
        """The state of each event's newest run, by event id."""
        return {one.id: one.state for one in self.events(limit=10_000)}

    def events(self, *, limit: int = 100, **wanted: Unpack[EventQuery]) -> list[EventRow]:
        """As `Inbox.events`."""
        return self._do(self.inbox.events(limit=limit, **wanted))

    def explain(self, document: str, *, document_type: str | None = None, tenant: str = "") -> list[str]:
        """As `Inbox.explain`."""
        return self._do(self.inbox.explain(document, document_type=document_type, tenant=tenant))

    def replay(self, *, reason: str = "a test", limit: int = 1_000, **wanted: Unpack[EventQuery]) -> int:
        """As `Inbox.replay`."""
        return self._do(self.inbox.replay(reason=reason, limit=limit, **wanted))

    def finalize(self, id: str, note: str = "", *, source: str | None = None) -> bool:
        """As `Inbox.finalize`, of the event that has this id. Raises SettingsError where none has, or several."""
        return self._do(self.inbox.finalize(self._ref(id, source), note))

    def reject(self, id: str, code: str = "a_test", note: str = "", *, source: str | None = None) -> bool:
        """As `Inbox.reject`, likewise; `work()` takes back the move of its document."""
        return self._do(self.inbox.reject(self._ref(id, source), code, note))

    def _ref(self, id: str, source: str | None) -> str:
        found = self.events(id=id, source=source)
        if len(found) != 1:
            raise SettingsError("id", f"{len(found)} events here have the id {id!r}", hint="source=…")
        return found[0].ref

    def release(
        self, document: str, *, by: str = "a test", reason: str = "a test", **wanted: Unpack[_OfDocument]
    ) -> bool:
        """As `Inbox.release`; `work()` carries it out."""
        return self._do(self.inbox.release(document, by=by, reason=reason, **wanted))

    def grant(
        self,
        document: str,
        token: str,
        *,
        by: str = "a test",
        reason: str = "a test",
        **wanted: Unpack[_OfDocument],
    ) -> str:
        """As `Inbox.grant`."""
        return self._do(self.inbox.grant(document, token, by=by, reason=reason, **wanted))

    def sql(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """One statement in a transaction of its own, with `:name` for values; its rows."""
        return self._on_connection(lambda connection: engines.rows(connection, statement, values))

    def create(self, metadata: Any) -> None:
        """Make the application's tables: its SQLAlchemy `MetaData`."""
        self._on_connection(metadata.create_all)

    # -- within -----------------------------------------------------------------------------------------------

    def _made(self) -> Inbox | AsyncInbox:
        """An inbox with all definitions on the trial's database, as a process that begins makes one."""
        given, choices = self._definitions, dict[str, Any](clock=self.clock)
        if given is not None:
            choices |= {"backoff": given.backoff, "rules": given.rules}
            choices |= {"sessions": getattr(given.store, "sessions", False)}
        made: Inbox | AsyncInbox
        if isinstance(given, AsyncInbox):
            made = AsyncInbox(engines.async_engine(self._url, durable=False), **choices)
        else:
            made = Inbox(engines.engine(self._url, durable=False), **choices)
        if given is not None:
            made.adopt(given, lambda one: structs.replace(one, function=self._counting(one.function)))
        for step in self._own:
            step(made)
        made.observe(self._committed)
        made.failures.each(self._failed.append)
        return made

    def _counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a handler's function; the same one in the same wrapper, as the inbox calls one function once for an event."""
        for known, wrapper in self._wrappers:
            if known == function:
                return wrapper

        @wraps(function)
        def blocking(event: Event, tx: object) -> object:
            self.calls[event.id] += 1
            return function(event, tx)

        @wraps(function)
        async def waiting(event: Event, tx: object) -> object:
            self.calls[event.id] += 1
            return await function(event, tx)

        made: Callable[..., object] = waiting if asyncio.iscoroutinefunction(function) else blocking
        self._wrappers.append((function, made))
        return made

    def _committed(self, change: Transition) -> None:
        if change.kind == "event.ended" and change.after in ("processed", "finalized"):
            self.effects[change.event_id] += 1

    def _seconds(self) -> float:
        return self.clock.at_ms / 1000

    def _do(self, value: T | Awaitable[T]) -> T:
        """Return the value, waited for where it has to be."""
        if self._loop is None or not isinstance(value, Awaitable):
            return cast("T", value)
        awaitable: Awaitable[T] = value
        return self._loop.run(_awaited(awaitable))

    def _on_connection(self, work: Callable[[Any], T]) -> T:
        store: Any = self.inbox.store
        engine = store.engine
        if self._loop is None:
            with engine.begin() as connection:
                return work(connection)

        async def go() -> T:
            async with engine.begin() as connection:
                found: T = await connection.run_sync(work)
                return found

        return self._loop.run(go())


async def _awaited(value: Awaitable[T]) -> T:
    return await value


class _Loop:
    """An event loop in a thread, so that a test may block on it even where it is a coroutine itself."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="surehook-trial", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[object, None, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
