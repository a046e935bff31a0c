"""Objects that put themselves right in a child process after a fork: what was drawn, opened or begun before is the parent's."""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Forked(Protocol):
    """An object that cannot be shared between a process and its children."""

    def forked(self) -> None:
        """Begin anew; called in a child, before anything else of it runs."""


_known: weakref.WeakSet[Forked] = weakref.WeakSet()


def renew_in_children(one: Forked) -> None:
    """Call `one.forked()` in each child process, for as long as the object is used by anybody."""
    _known.add(one)


def _renew() -> None:
    for one in list(_known):
        one.forked()


os.register_at_fork(after_in_child=_renew)
