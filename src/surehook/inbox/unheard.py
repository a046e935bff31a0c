"""Definitions that nothing will ever come to, most often by a misspelt name: warned of once, as workers begin.

An event that no handler hears of is parked, and that is loud. Where a workflow follows it, it moves its document and is
finalized all the same: then a handler for `document.sgined` would be a silence.
"""

from __future__ import annotations

from collections.abc import Iterator

from surehook.core.meant import meant
from surehook.core.workflow.decide import Table
from surehook.inbox.following import Following, FollowRule
from surehook.inbox.handlers import Handler, Handlers
from surehook.inbox.patterns import matches
from surehook.inbox.safe_log import log


class UnheardDefinitions:
    """Finds them among the handlers and workflows of an inbox."""

    def __init__(self, handlers: Handlers, following: Following) -> None:
        self._handlers, self._following = handlers, following
        self._told: set[str] = set()

    def check(self) -> None:
        """Warn of each that was not warned of."""
        for warning in self._found():
            if warning not in self._told:
                self._told.add(warning)
                log.warning("%s", warning)

    def _found(self) -> Iterator[str]:
        for rule in self._following.rules():
            yield from _of_workflow(rule)
        for handler in self._handlers:
            yield from self._of_handler(handler)
        for handler in self._following.undoing.handlers:
            yield from self._of_undoing(handler)

    def _of_handler(self, handler: Handler) -> Iterator[str]:
        """Look at one that is for a single type: if a workflow follows that, its table has to name it."""
        if "*" in handler.pattern:
            return
        workflow = self._following.of(handler.source, handler.pattern)
        if workflow is None or workflow.table.on_unknown != "conflict":
            return
        types = _types(workflow.table)
        if handler.pattern not in types:
            yield (
                f"on({handler.source!r}, {handler.pattern!r}) of {handler.name} will never be called: a workflow follows it, and "
                f"its table names no such type; {meant(handler.pattern, types, 'types')}"
            )

    def _of_undoing(self, handler: Handler) -> Iterator[str]:
        rules = [one for one in self._following.rules() if _meet(one.source, handler.source)]
        types = {type for one in rules for type in one.workflow.table.moving}
        never = f"on_undo({handler.source!r}, {handler.pattern!r}) of {handler.name} will never be called"
        if not rules:
            yield (
                f"{never}: no workflow follows that source, so its events move no document that could go back; "
                f"inbox.follow(workflow, {handler.source!r}) lets one"
            )
        elif not _any(handler.pattern, types):
            yield f"{never}: no such type moves a document; {meant(handler.pattern, types, 'types')}"


def _of_workflow(rule: FollowRule) -> Iterator[str]:
    table = rule.workflow.table
    types = _types(table)
    if table.on_unknown == "conflict" and not _any(rule.pattern, types):
        yield (
            f"follow({table.document_type!r}, {rule.source!r}, {rule.pattern!r}) moves nothing: the table names no such type; "
            f"{meant(rule.pattern, types, 'types')}"
        )


def _meet(one: str, other: str) -> bool:
    return one == other or "*" in (one, other)


def _types(table: Table) -> set[str]:
    return {*table.types, *table.aliases}


def _any(pattern: str, types: set[str]) -> bool:
    return any(matches(pattern, type) for type in types)
