"""Inboxes whose handlers hang, each in its way, for processes that are told to stop.

    surehook inbox work tests.inbox.programs.hanging:NAME       the command owns the process
    python -m tests.inbox.programs.hanging NAME                 an application does, and calls `stop`

DATABASE is the path of a file of SQLite. A line on the output says when a handler hangs, and when `stop` is over.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import signal
import sys
import threading
from typing import Any

from surehook.inbox import AsyncInbox, Inbox, Rules
from tests.inbox.house import partner

LONG_S = 3600
PATH = os.environ["DATABASE"]
RULES = Rules(stop_s=0.2)


def sleeps(event: Any, tx: Any) -> None:
    hangs()
    threading.Event().wait(LONG_S)


deaf, blocks, shell, regex, pooled, signals, forks = (
    AsyncInbox(f"sqlite:///{PATH}", [partner()], rules=RULES) for _ in range(7)
)
thread = Inbox(f"sqlite:///{PATH}", [partner()], rules=RULES)
thread.on("partner")(sleeps)


def hangs() -> None:
    print("hangs", flush=True)


@deaf.on("partner")
async def is_deaf(event: Any, tx: Any) -> None:
    hangs()
    while True:
        try:
            await asyncio.sleep(LONG_S)
        except asyncio.CancelledError:
            continue


@blocks.on("partner")
async def holds_the_loop(event: Any, tx: Any) -> None:
    sleeps(event, tx)


@shell.on("partner")
async def waits_for_a_command(event: Any, tx: Any) -> None:
    hangs()
    os.system("exec cat >/dev/null 2>&1")  # noqa: ASYNC221 - which goes on after a signal, until its input ends


@regex.on("partner")
async def searches(event: Any, tx: Any) -> None:
    hangs()
    re.match("(a+)+$", "a" * 60 + "b")  # no other thread has the interpreter meanwhile


@forks.on("partner")
async def ends_a_child(event: Any, tx: Any) -> None:
    child = multiprocessing.get_context("fork").Process(target=threading.Event().wait, args=(LONG_S,))
    child.start()
    child.terminate()
    child.join(10)
    if child.exitcode == -signal.SIGTERM:
        hangs()
    else:
        print("its child goes on", flush=True)
        child.kill()
    await asyncio.sleep(LONG_S)


@pooled.on("partner")
async def leaves_a_thread(event: Any, tx: Any) -> None:
    hangs()
    await asyncio.to_thread(threading.Event().wait, LONG_S)


@signals.on("partner")
async def takes_the_signals_descriptor(event: Any, tx: Any) -> None:
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, hangs)
    hangs()
    await asyncio.sleep(LONG_S)


async def embedded(inbox: Any) -> None:
    began = asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    inbox.start(2)
    await began
    stopping = inbox.stop()
    if stopping is not None:
        await stopping
    print("stopped", flush=True)


if __name__ == "__main__":
    asyncio.run(embedded(globals()[sys.argv[1]]))
