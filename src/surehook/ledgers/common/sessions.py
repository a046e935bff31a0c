"""The sessions that the shared parts of a SQL ledger run their work on; each ledger implements them for its driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from surehook.ledgers.common.indexes import ListIndexes
from surehook.ledgers.common.statements import Changing, Reading

if TYPE_CHECKING:
    from surehook.ledgers.common.steps import Steps

P = ParamSpec("P")
R = TypeVar("R")


class Sessions(ABC):
    """Work of `ledgers/common` on the ledger's own connections, by who waits for it."""

    @abstractmethod
    async def _show(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Read what somebody asked to see. On PostgreSQL it waits for lists."""

    @abstractmethod
    async def _load(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Read what a node keeps in memory. It does not wait for lists."""

    @abstractmethod
    async def _load_page(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Read what a node keeps in memory, all statements in one snapshot."""

    @abstractmethod
    async def _refresh(self, work: Callable[P, Reading[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Read what accepts wait for: no list may delay it."""

    @abstractmethod
    async def _change(self, work: Callable[P, Changing[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Change the configuration, in a transaction of its own or joined with others."""

    @abstractmethod
    async def _import_lists(self) -> None:
        """Import SQLAlchemy and the lists, on a thread where they delay nobody. Only lists wait for this.

        `sys.modules` has a module before it is whole, so nothing else may import them first.
        """

    @abstractmethod
    async def _list(self, work: Callable[P, Steps[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        """Read a list in one snapshot. `_import_lists` comes first."""

    @abstractmethod
    async def _list_indexes(self) -> ListIndexes:
        """Return the indexes that lists can use now. `_import_lists` comes first."""
