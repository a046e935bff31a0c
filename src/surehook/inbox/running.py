"""An inbox from outside its application: found by name, asked one thing, or worked for until a signal comes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from importlib import import_module
from typing import Any

from surehook.core.errors import SettingsError
from surehook.inbox.async_inbox import AsyncInbox
from surehook.inbox.inbox import Inbox
from surehook.ports.inbox import Pruned

PORTION = 1_000  # rows in one transaction: some tens of milliseconds


def inbox_at(place: str) -> Inbox | AsyncInbox:
    """The inbox that `MODULE:NAME` is. Raises SettingsError where there is none."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise SettingsError("MODULE:INBOX", f"{place!r} does not say where", hint="such as shop.hooks:inbox")
    if os.getcwd() not in sys.path:  # as `python -m` would have it: the application is often not installed
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        raise SettingsError("MODULE:INBOX", str(error), hint="run it where the application runs") from error
    except Exception as error:  # whatever the application's own code raises while it is loaded
        raise SettingsError(
            "MODULE:INBOX",
            f"the module {module} failed while it was loaded: {type(error).__name__}: {error}",
            hint="give it what it needs, such as the application's environment; `surehook --traceback …` shows where",
        ) from error
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Inbox | AsyncInbox):
        raise SettingsError("MODULE:INBOX", f"{name} of {module} is no inbox")
    return found


def asked(inbox: Inbox | AsyncInbox, name: str, *words: Any, **named: Any) -> Any:
    """What a method of the inbox gives, waited for where it has to be; the inbox is closed then."""
    if isinstance(inbox, Inbox):
        try:
            return getattr(inbox, name)(*words, **named)
        finally:
            inbox.close()

    async def go() -> Any:
        try:
            return await getattr(inbox, name)(*words, **named)
        finally:
            await inbox.close()

    return asyncio.run(go())


def pruned(inbox: Inbox | AsyncInbox, *, bodies_days: float, events_days: float) -> Pruned:
    """Remove all that retention allows, in transactions of `PORTION` rows, between which workers have their turn."""

    async def go() -> Pruned:
        requests = events = 0
        try:
            while True:
                some = inbox.prune(bodies_days=bodies_days, events_days=events_days, limit=PORTION)
                done = some if isinstance(some, Pruned) else await some
                requests, events = requests + done.requests, events + done.events
                if max(done.requests, done.events) < PORTION:
                    return Pruned(requests, events)
        finally:
            if (closing := inbox.close()) is not None:
                await closing

    return asyncio.run(go())


def until_stopped(inbox: Inbox | AsyncInbox, workers: int) -> None:
    """Process until SIGTERM or SIGINT; ends after the batches that are under way. Raises SettingsError where nothing is
    handled: each event would wait for ever."""
    if inbox.handles_nothing:
        raise SettingsError(
            "MODULE:INBOX",
            "this inbox has no handler",
            hint="name the module in which they are, or import it where the inbox is",
        )
    if isinstance(inbox, AsyncInbox):
        asyncio.run(_until_stopped(inbox, workers))
        return
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    inbox.start(workers)
    stopped.wait()
    inbox.close()


async def _until_stopped(inbox: AsyncInbox, workers: int) -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    inbox.start(workers)
    await stopped.wait()
    await inbox.close()
