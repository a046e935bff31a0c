"""A definition that nothing will ever come to is warned of once, as workers begin; and only such a one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from surehook.inbox import AsyncInbox, sources
from surehook.inbox.workflow import SIGNING
from tests.inbox.house import SECRET

TURNS = replace(SIGNING, document_type="turns", aliases={"contract.signed": "document.signed"})
LENIENT = replace(SIGNING, document_type="lenient", on_unknown="informational")


def quiet(event: Any, tx: Any) -> None:
    """A handler."""


@pytest.fixture
def warnings(caplog: pytest.LogCaptureFixture) -> Callable[..., list[str]]:
    caplog.set_level(logging.WARNING, "surehook.inbox")

    def of(define: Callable[[AsyncInbox], object]) -> list[str]:
        inbox = AsyncInbox(
            "sqlite+aiosqlite://",
            [sources.named("surehook", secret=SECRET), sources.named("yousign", secret="s" * 24)],
        )
        define(inbox)
        for _ in range(3):
            inbox.worker()
        return [record.getMessage() for record in caplog.records]

    return of


def following(
    *more: Callable[[AsyncInbox], object], table: Any = SIGNING, pattern: str = "document.*"
) -> Callable[[AsyncInbox], None]:
    def define(inbox: AsyncInbox) -> None:
        inbox.follow(table, "surehook", pattern)
        for one in more:
            one(inbox)

    return define


@pytest.mark.parametrize(
    ("define", "said"),
    [
        (
            following(lambda inbox: inbox.on("surehook", "document.sgined")(quiet)),
            "did you mean 'document.signed'?",
        ),
        (following(pattern="dokument.*"), "follow('signing', 'surehook', 'dokument.*') moves nothing"),
        (following(lambda inbox: inbox.on_undo("yousign")(quiet)), "no workflow follows that source"),
        (
            following(lambda inbox: inbox.on_undo("surehook", "document.sgined")(quiet)),
            "did you mean 'document.signed'?",
        ),
        (
            lambda inbox: inbox.on_undo("surehook", "document.signed")(quiet),
            "no workflow follows that source",
        ),
    ],
)
def test_what_nothing_will_come_to_is_warned_of_once_with_what_to_do(warnings, define, said):
    (warning,) = warnings(define)
    assert said in warning


@pytest.mark.parametrize(
    "define",
    [
        following(lambda inbox: inbox.on("surehook", "document.signed")(quiet)),
        following(
            lambda inbox: inbox.on("*", "*")(quiet), lambda inbox: inbox.on_undo("*", "document.*")(quiet)
        ),
        following(lambda inbox: inbox.on("surehook", "invoice.paid")(quiet)),
        following(lambda inbox: inbox.on("yousign", "document.sgined")(quiet)),
        following(lambda inbox: inbox.on("surehook", "contract.signed")(quiet), table=TURNS, pattern="*"),
        following(lambda inbox: inbox.on("surehook", "document.seen")(quiet), table=LENIENT),
        lambda inbox: inbox.on("surehook", "document.sgined")(quiet),
    ],
)
def test_what_something_may_come_to_is_not(warnings, define):
    assert warnings(define) == []
