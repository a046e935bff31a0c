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

    receive.py       one request, judged             answers.py            what a sender is told
    group_commit.py  requests share a transaction    refusals.py           counts and samples of refused requests
    handlers.py      the handlers                    process.py            runs, in one transaction
    following.py     which workflow has an event     result_policy.py      the end of one run
    document_batch.py  documents decided on          document_rows.py      their rows
    worker.py        workers                         worker_transactions.py  what they do in a transaction
    pool.py          those that run, and those that hang
    worker_threads.py, worker_tasks.py               workers in threads, and in tasks of a loop
    worker_task.py   the task of one, and who cancels it
    handler_times.py runs that share a transaction   calls.py              handlers at work
    event.py         an event, as handlers see it    results.py            what handlers return
    definitions.py   sources, handlers, rules        inbox.py              Inbox; async_inbox.py AsyncInbox
    operations.py    finalize, replay, lists         document_commands.py  release, grant
    pending_receipts.py, receipt_batches.py, receipt_sender.py             receipts, from the commit to the sender
    unhandled_events.py  parked without a handler    no_workers.py         a warning that nobody processes
    retention.py     pruning by idle workers         backoff.py            the wait after a failure
    receipt_trouble.py  receipts that are not taken  changed_tables.py      documents decided on by another table
    standing_documents.py  documents while a batch is processed            trying.py  chores beside a transaction's work
    trouble.py       the database away               log_limits.py         log lines that come once in a while
    failures.py      failed attempts in the log      tracebacks.py         what is shown of their tracebacks
    queue/           a broker in front of the table  sql/                  the tables
    rules.py, hints.py, asgi.py, wsgi.py, sources/, django/, testing/

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
    from surehook.inbox.queue.option import Queue as Queue
    from surehook.inbox.retention import Keep as Keep
    from surehook.inbox.rules import Rules as Rules
    from surehook.inbox.sources.receipts_to import ReceiptsTo as ReceiptsTo

_PLACES = {
    "AsyncInbox": "async_inbox",
    "Backoff": "backoff",
    "Event": "event",
    "Ignore": "handlers",
    "Inbox": "inbox",
    "Keep": "retention",
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
