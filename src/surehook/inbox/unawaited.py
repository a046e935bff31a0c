"""Coroutines that a handler made and nobody awaited: what they were to do was not done, so the attempt has failed.

    async def signed(event, tx):
        tx.execute(…)  # makes a coroutine, and throws it away

Python notices when it throws one away, in the thread or task that let go of it, and has a function of `warnings` tell of it. That
function is asked here, and goes on telling. The warning itself is no ground to build on: which are shown, and how often for one
place, is a setting of the whole process, and to catch them for one call is not safe beside other threads and tasks. It costs
nothing until there is one.

Python says nothing of awaitables that are no coroutines (a future, `tx.stream(…)`), nor, before its garbage is collected, of a
coroutine that is kept somewhere. A collection during the call may bring up another's: then this attempt fails for it, and is done
again.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

from surehook.inbox.calls import HandlerCalls

_TELL = "_warn_unawaited_coroutine"  # of `warnings`, asked for by the interpreter each time
_watched: list[weakref.ref[HandlerCalls]] = []


def watch(calls: HandlerCalls) -> None:
    """Have calls know, from now on, of coroutines that they made and nobody awaited."""
    tell: Callable[[object], object] | None = getattr(warnings, _TELL, None)
    if tell is not None and not isinstance(tell, _UnawaitedHook):
        setattr(warnings, _TELL, _UnawaitedHook(tell))
    _watched[:] = [one for one in _watched if one() is not None]
    _watched.append(weakref.ref(calls))


class _UnawaitedHook:
    """The hook that `warnings` calls for a coroutine nobody awaited: notes it at the call under way first."""

    def __init__(self, tell: Callable[[object], object]) -> None:
        self._tell = tell

    def __call__(self, coroutine: Any) -> None:
        for one in tuple(_watched):
            calls = one()
            if calls is not None and (call := calls.mine()) is not None:
                call.unawaited = coroutine.__qualname__
        self._tell(coroutine)
