"""What outlives the process: the same book opened again, and a copy of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from surehook.core.errors import Problem
from surehook.delivery.loading import read_all
from surehook.ports.reading import DeliveryFilter, EventFilter

from .adapters import Adapter
from .desk import ALL, Desk
from .making import NOW


async def _everything(ledger: Any) -> list[Any]:
    pages = [
        await ledger.events(EventFilter(), limit=200, after=None),
        await ledger.deliveries(DeliveryFilter(), limit=200, after=None),
    ]
    return [await read_all(ledger), *(page.data for page in pages)]


async def _fill(desk: Desk) -> None:
    await desk.finish_one()
    await desk.finish_one("dead")
    await desk.hold_one()
    await desk.publish_one(parked="breaker")
    await desk.publish_one(due_at=NOW + 1)


def test_a_book_that_is_opened_again_is_the_same(
    adapter: Adapter, runner: asyncio.Runner, desk: Desk, tmp_path: Path
) -> None:
    if not adapter.lasts:
        pytest.skip("this book is gone with its object")

    async def scenario() -> None:
        await _fill(desk)
        before = await _everything(desk.ledger)
        await desk.ledger.close()
        again = adapter.make(tmp_path)
        await again.open(now=NOW)
        assert await _everything(again) == before
        assert [node.id for node in await again.nodes()] == [desk.node]
        assert (await again.evict([desk.node], now=NOW)).freed == 1
        await again.close()

    runner.run(scenario())


async def test_a_copy_is_a_whole_book(adapter: Adapter, desk: Desk, tmp_path: Path) -> None:
    if not adapter.backs_up:
        with pytest.raises(Problem) as refused:
            await desk.ledger.backup(str(tmp_path / "copy.db"))
        assert refused.value.code == "backup_unsupported"
        return
    await _fill(desk)
    before = await _everything(desk.ledger)
    (tmp_path / "copies").mkdir()
    await desk.ledger.backup(str(tmp_path / "copies" / "book.db"))
    await desk.publish_one()
    copy = adapter.make(tmp_path / "copies")
    await copy.open(now=NOW)
    assert await _everything(copy) == before
    await copy.close()
    assert len(await desk.claim(limit=ALL)) == 1


async def test_an_existing_file_is_not_overwritten_by_a_copy(
    adapter: Adapter, desk: Desk, tmp_path: Path
) -> None:
    if not adapter.backs_up:
        pytest.skip("this book cannot be copied to a file")
    place = tmp_path / "copy.db"
    place.write_bytes(b"precious")
    with pytest.raises(Problem):
        await desk.ledger.backup(str(place))
    assert place.read_bytes() == b"precious"
