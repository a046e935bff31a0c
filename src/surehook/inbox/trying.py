"""Chores beside a transaction's work: one that fails keeps nobody from working."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from surehook.inbox.safe_log import log
from surehook.ports.inbox import StoreError, Transaction


@contextmanager
def trying(transaction: Transaction, failed: Callable[[Exception], object]) -> Iterator[None]:
    """Undo alone what fails here, and say so. Raises StoreError, with which the transaction is lost."""
    has_begun = False
    try:
        with transaction.savepoint():
            has_begun = True
            yield
    except StoreError:  # the connection or the transaction is lost, and the work with it
        raise
    except Exception as error:
        if not has_begun:  # likewise
            raise
        failed(error)


def not_seen(what: str) -> Callable[[Exception], object]:
    """Make the warning for events that could not be looked at."""
    return lambda error: log.warning("%s events could not be looked at: %s", what, error)
