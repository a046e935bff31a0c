"""Several server processes on one socket: a parent that starts them, and tells its caller of the first that serves."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from surehook.config import Settings
from surehook.core.errors import LedgerFull, SettingsError
from surehook.host.children import Child, Children
from surehook.host.clock import SystemClock
from surehook.host.listening import address

# Called once a server listens, with its address and the key that was made for an empty ledger.
Started = Callable[[str, str | None], None]
EXIT_FAILED = 1
EXIT_UNUSABLE = 2  # a setting


def run_processes(
    settings: Settings,
    bound: socket.socket,
    serve: Callable[[Started, Child], int],
    *,
    started: Started,
    say_each: bool,
) -> int:
    """Run `serve` in each of several processes until they are told to stop; returns the exit status.

    Raises the first one's SettingsError or LedgerFull.
    """
    from surehook.telemetry.logging import configure

    say = configure(settings.log_level, settings.log_format, clock=SystemClock(), process="parent").say
    refused: list[SettingsError | LedgerFull] = []
    greeted = False

    def work(child: Child) -> int:
        def up(address: str, key: str | None) -> None:
            child.tell(up=True, key=key)

        try:
            return serve(up, child)
        except SettingsError as error:
            child.tell(up=False, key=error.key, detail=error.detail, hint=error.hint)
            return EXIT_UNUSABLE
        except LedgerFull as error:
            child.tell(up=False, key="", detail=str(error), hint=None)
            return EXIT_FAILED

    def told(facts: dict[str, Any]) -> None:
        nonlocal greeted
        if not facts["up"]:
            if greeted:
                say(f"process {facts['process']} cannot start: {facts['key'] or 'ledger'}: {facts['detail']}")
                return
            key, detail = facts["key"], facts["detail"]
            refused.append(SettingsError(key, detail, hint=facts["hint"]) if key else LedgerFull(detail))
            parent.stop()
            return
        if not greeted:
            greeted = True
            started(address(settings.host, bound), facts["key"])
        if say_each:
            say(f"process {facts['process']} serves (pid {facts['pid']})")

    parent = Children(settings.processes, work, grace_s=float(settings.grace_s), told=told, say=say)
    status = parent.run()
    if refused:
        raise refused[0]
    return status
