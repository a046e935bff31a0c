"""Coroutines that a handler made and nobody awaited: what they were to do was not done, so the attempt has failed.

    async def signed(event, tx):
        tx.execute(…)  # makes a coroutine, and throws it away

Python notices when it throws one away, in the thread or task that let go of it, and has a function of `warnings` tell of it. That
function is asked here, and goes on telling. The warning itself is no ground to build on: which are shown, and how often for one
place, is a setting of the whole process, and to catch them for one call is not safe beside other threads and tasks. It costs
nothing until there is one.

What the garbage collector finds may be anybody's: it works in whichever thread allocates, so a library's or the application's own
forgotten coroutine, or one that a destructor makes, comes up in the middle of an innocent handler. So a call is not blamed during
a collection in its thread, but for what is let go of at once, by its own code.

Python says nothing of awaitables that are no coroutines (a future, `tx.stream(…)`), and of a coroutine that is kept somewhere
only in a collection, where nobody is blamed for it.
"""

from __future__ import annotations

import gc
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

from surehook.inbox.calls import HandlerCalls

_TELL = "_warn_unawaited_coroutine"  # of `warnings`, asked for by the interpreter each time
_watched: list[weakref.ref[HandlerCalls]] = []


def watch(calls: HandlerCalls) -> None:
    """Have calls know, from now on, of coroutines that they made and nobody awaited."""
    tell: Callable[[object], object] | None = getattr(warnings, _TELL, None)
    if tell is not None and not (isinstance(tell, type) and issubclass(tell, _UnawaitedHook)):
        setattr(warnings, _TELL, _hook(tell))
    _watched[:] = [one for one in _watched if one() is not None]
    _watched.append(weakref.ref(calls))


class _Collections:
    """Knows the thread that collects garbage now; there is one at a time."""

    def __init__(self) -> None:
        self._thread: int | None = None

    def __call__(self, phase: str, _: object) -> None:
        self._thread = threading.get_ident() if phase == "start" else None

    @property
    def are_here(self) -> bool:
        return self._thread == threading.get_ident()


class _UnawaitedHook:
    """The hook that `warnings` has for a coroutine nobody awaited: notes it at the call under way, and tells as before.

    Its class is what is called: `__new__` notes, and `__init__` is the function that tells. The interpreter calls one after the
    other, so that no frame of ours lies between that function and the line that forgot the coroutine: it warns of its caller.
    """

    collections: ClassVar[_Collections]

    def __new__(cls, coroutine: Any) -> _UnawaitedHook:
        for one in () if cls.collections.are_here else tuple(_watched):
            calls = one()
            if calls is not None and (call := calls.mine()) is not None:
                call.unawaited = coroutine.__qualname__
        return super().__new__(cls)


def _hook(tell: Callable[[object], object]) -> type[_UnawaitedHook]:
    collections = _Collections()
    gc.callbacks.append(collections)

    def other(self: _UnawaitedHook, coroutine: object) -> None:
        tell(coroutine)

    # One of somebody else may return what no `__init__` may.
    told = staticmethod(tell) if getattr(tell, "__module__", None) == "warnings" else other
    return type("Hook", (_UnawaitedHook,), {"__init__": told, "collections": collections})
