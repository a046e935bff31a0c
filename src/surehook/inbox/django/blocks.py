"""Blocks of `transaction.atomic()` that a handler leaves open, or ends although they are not its own.

Django keeps the blocks of a connection in a stack, and whoever leaves one leaves the innermost: so after a handler that came back
from within a block of its own, the inbox would leave that one, and nobody would commit the transaction.
"""

from __future__ import annotations

from django.db.backends.base.base import BaseDatabaseWrapper

from surehook.inbox.sql.handler_commits import HandlerEndedIt
from surehook.ports.inbox import StoreError

LEFT_OPEN = "a block of transaction.atomic() was left open: use `with transaction.atomic():`, and close an ExitStack it is in"


class LeftOpen(Exception):
    """A handler came back from within a block of its own."""


class Unbalanced(StoreError):
    """A handler ended a block that was there before it: its savepoint is gone, and it cannot be undone alone."""


def level(django: BaseDatabaseWrapper, depth: int) -> None:
    """Bring the stack of a connection back to so many savepoints after a handler that has left it otherwise.

    Raises Unbalanced where there were fewer, HandlerEndedIt where the handler was out of the transaction."""
    left = len(django.savepoint_ids) - depth
    if left > 0:
        # Undoing the handler's savepoint undoes theirs.
        del django.savepoint_ids[-left:], django.atomic_blocks[-left:]
    elif not django.in_atomic_block:
        raise HandlerEndedIt
    else:
        # For those who leave them next; nothing of this transaction is to be committed.
        none: list[str] = [None] * -left  # type: ignore[list-item]  # as Django has it, against its types
        django.savepoint_ids.extend(none)
        django.atomic_blocks.extend(django.atomic_blocks[-1:] * -left)
        raise Unbalanced("a handler has ended a block of transaction.atomic() that it had not begun")
