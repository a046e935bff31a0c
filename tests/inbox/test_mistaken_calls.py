"""Mistakes in calls of the inbox and in the address of its database, each refused in one line where it is made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from surehook.inbox import AsyncInbox, Inbox, sources
from tests.inbox.house import SECRET, partner
from tests.inbox.test_mistakes import Mistake, Scene, raised, scene

__all__ = ["scene"]


def starts(kind: Any, workers: object) -> str:
    async def go() -> None:
        kind("sqlite://", [partner()]).start(workers=workers)

    return raised(lambda: asyncio.run(go()))


MISTAKES = [
    *(
        Mistake(f"started {workers!r} workers of an {kind.__name__}", lambda s, kind=kind, workers=workers: starts(kind, workers), repr(workers), "start(workers=4)")
        for kind in (Inbox, AsyncInbox)
        for workers in (0, -1, 1.5, "4", None, True)
    ),
    *(
        Mistake(f"gave receipts={receipts!r}", lambda s, receipts=receipts: raised(lambda: sources.named("surehook", secret=SECRET, receipts=receipts)), f"receipts: a {type(receipts).__name__} is no ReceiptsTo", "ReceiptsTo('https://")
        for receipts in ("https://sender/v1/receipts", True, False)
    ),
    *(
        Mistake(f"imported {name} without the extra", lambda s, name=name: s.without("sqlalchemy", f"import {name}"), "needs the package sqlalchemy", "pip install 'surehook[inbox]'")
        for name in ("surehook.inbox.testing", "surehook.inbox.sql.ddl", "surehook.inbox.sql", "surehook.inbox.transitions")
    ),
    Mistake("started an AsyncInbox beside its loop", lambda s: raised(lambda: AsyncInbox("sqlite://", [partner()]).start()), "no event loop runs here", "lifespan=inbox.lifespan"),
]  # fmt: skip


@pytest.mark.parametrize("mistake", [pytest.param(one, id=one.did) for one in MISTAKES])
def test_a_mistaken_call_is_one_line_that_names_its_cause_and_the_next_step(
    mistake: Mistake, scene: Scene
) -> None:
    line = mistake.do(scene)
    assert "\n" not in line
    assert mistake.cause in line
    assert mistake.step in line


def test_a_refused_start_leaves_nothing_behind(tmp_path: Path) -> None:
    inbox = Inbox(f"sqlite:///{tmp_path / 'app.db'}", [partner()])
    raised(lambda: inbox.start(workers=0))
    assert not inbox.pool.members
    inbox.close()
