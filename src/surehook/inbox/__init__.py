"""The receiver: verify, persist, dedupe, answer, process.

    from surehook.inbox import Inbox, sources

    inbox = Inbox("postgresql://localhost/app", [sources.named("yousign", secret=[NEW, OLD])])

    @inbox.on("yousign", "signature_request.done")
    def done(event, tx):                     # tx also marks the event processed: both happen, or neither
        tx.execute(…)

    app = FastAPI(lifespan=inbox.lifespan)   # workers in this process
    app.mount("/hooks", inbox.asgi())        # POST /hooks/yousign → 2xx only after the commit

**Authority.** The application's database is the only truth. A unique constraint on (source, tenant, event id) decides what is a
repeat; a row's lease token decides who may process it; nothing is remembered in memory that would have to be right.

**States.** `accepted` → `processed` → `finalized`, or `rejected`; besides these `held` (too early), `parked` (nobody here has a
handler, or knows its schema version, yet), `ignored` and `dead`. They are states of a run, of which an event has one for its
arrival and one for each replay. What came over the wire is never changed.

**Failure.** Before the commit of a request nothing was said to the sender, who sends again. After it the event is processed by
whoever is alive, any number of times, and takes effect once, because effects and mark are one commit. A worker that lost its
lease cannot commit.

    receive.py      one request, judged            answers.py   what a sender is told
    line.py         group commit                   refusals.py  what was not believed
    handlers.py     who does what                  process.py   runs, in one transaction
    following.py    documents and their workflows  ends.py      how one run ends
    work.py         workers                        event.py     what a handler sees
    rules.py        how workers work               pace.py      which runs share a transaction
    calls.py        handlers at work               crew.py      who is left behind
    threads.py      workers in threads; tasks.py in tasks
    definitions.py  sources, handlers, rules       inbox.py     Inbox; async_inbox.py AsyncInbox
    desk.py         finalize, replay, lists        sql/         the tables
    owing.py        receipts, owed by a commit     letters.py   what they say, sent by telling.py
    results.py      what handlers return           hints.py     errors that they usually raise
    unhandled.py    what waits for a handler       seldom.py    what is said once in a while
    keeping.py      retention                      backoff.py   how long a failure waits
    queue/          what may stand before them     asgi.py, wsgi.py, sources/

`surehook.inbox.sources` needs neither a database nor SQLAlchemy; the rest is loaded when first used.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from surehook.inbox.async_inbox import AsyncInbox as AsyncInbox
    from surehook.inbox.backoff import Backoff as Backoff
    from surehook.inbox.event import Event as Event
    from surehook.inbox.handlers import Ignore as Ignore
    from surehook.inbox.handlers import Later as Later
    from surehook.inbox.handlers import Refuse as Refuse
    from surehook.inbox.inbox import Inbox as Inbox
    from surehook.inbox.keeping import Keep as Keep
    from surehook.inbox.queue.option import Queue as Queue
    from surehook.inbox.rules import Rules as Rules
    from surehook.inbox.sources.receipts_to import ReceiptsTo as ReceiptsTo

_PLACES = {
    "AsyncInbox": "async_inbox",
    "Backoff": "backoff",
    "Event": "event",
    "Ignore": "handlers",
    "Inbox": "inbox",
    "Keep": "keeping",
    "Later": "handlers",
    "Queue": "queue.option",
    "ReceiptsTo": "sources.receipts_to",
    "Refuse": "handlers",
    "Rules": "rules",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    try:
        return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("sqlalchemy", "greenlet"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs the package {error.name}: pip install 'surehook[inbox]'", name=error.name
        ) from error
