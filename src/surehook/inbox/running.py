"""An inbox from outside its application: found by name, asked one thing, or worked for until a signal comes."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from importlib import import_module
from typing import TypeVar, cast

from surehook.core.errors import SettingsError
from surehook.core.meant import meant
from surehook.inbox.async_inbox import AsyncInbox
from surehook.inbox.inbox import Inbox
from surehook.inbox.stop_order import StopOrder

T = TypeVar("T")

END_S = 4.0  # after `Rules.stop_s`: for giving back what was not done, and for letting connections go
STUCK_S = 1.0  # between two looks whether too many handlers hang


def inbox_at(place: str) -> Inbox | AsyncInbox:
    """Import the inbox at `MODULE:NAME`. Raises SettingsError where there is none."""
    module, _, name = place.partition(":")
    if not module or not name:
        raise SettingsError("MODULE:INBOX", f"{place!r} does not say where", hint="such as shop.hooks:inbox")
    if os.getcwd() not in sys.path:  # as `python -m` would have it: the application is often not installed
        sys.path.insert(0, os.getcwd())
    try:
        found: object = import_module(module)
    except ModuleNotFoundError as error:
        raise SettingsError("MODULE:INBOX", str(error), hint=_where(module, error)) from error
    except Exception as error:  # whatever the application's own code raises while it is loaded
        raise SettingsError(
            "MODULE:INBOX",
            f"the module {module} failed while it was loaded: {type(error).__name__}: {error}",
            hint="give it what it needs, such as the application's environment; `surehook --traceback …` shows where",
        ) from error
    names = [one for one, value in vars(found).items() if isinstance(value, Inbox | AsyncInbox)]
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, Inbox | AsyncInbox):
        what = f"there is no {name} in {module}"
        if found is not None:
            what = f"{name} of {module} is a {type(found).__name__}, and no inbox"
        raise SettingsError("MODULE:INBOX", what, hint=meant(name, names, f"inboxes of {module}"))
    return found


def _where(module: str, error: ModuleNotFoundError) -> str:
    if module.endswith(".py") or "/" in module:
        return "a module and no file: shop.hooks:inbox for shop/hooks.py"
    if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
        return "run it in the folder from which the application is imported"
    return (
        f"{module} imports it: install it where this command runs, or run it in the application's environment"
    )


def asked(inbox: Inbox | AsyncInbox, question: Callable[[Inbox | AsyncInbox], T | Awaitable[T]]) -> T:
    """The inbox's answer to `question`, awaited if it is an `AsyncInbox`; the inbox is closed then."""
    if isinstance(inbox, Inbox):
        try:
            return cast(T, question(inbox))
        finally:
            inbox.close()

    async def go() -> T:
        try:
            return await cast("Awaitable[T]", question(inbox))
        finally:
            await inbox.close()

    return asyncio.run(go())


def until_stopped(
    inbox: Inbox | AsyncInbox, workers: int, begins: Callable[[], object] = lambda: None
) -> bool:
    """Process until SIGTERM or SIGINT, or until too many handlers hang; whether it was asked to stop. Ends after the handlers
    that are at work, and within `Rules.stop_s` and five seconds whatever they do; a second signal ends it at once.
    `begins()` is called once nothing speaks against it.

    Raises SettingsError where nothing is handled: each event would wait for ever."""
    if inbox.handles_nothing:
        raise SettingsError(
            "MODULE:INBOX",
            "this inbox has no handler",
            hint="name the module in which they are, or import it where the inbox is",
        )
    order = StopOrder(inbox.rules.stop_s + END_S, inbox.calls.under_way)
    begins()
    if isinstance(inbox, AsyncInbox):
        asyncio.run(_until_stopped(inbox, workers, order))
    else:
        inbox.start(workers)
        while not order.stopped.wait(STUCK_S) and not inbox.pool.is_stuck:
            pass
        order.ends()
        inbox.close()
    return order.stopped.is_set()


async def _until_stopped(inbox: AsyncInbox, workers: int, order: StopOrder) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    order.then = lambda: loop.call_soon_threadsafe(stopped.set)
    inbox.start(workers)
    while not order.stopped.is_set() and not inbox.pool.is_stuck:
        with suppress(TimeoutError):
            async with asyncio.timeout(STUCK_S):
                await stopped.wait()
    order.ends()
    await inbox.close()
