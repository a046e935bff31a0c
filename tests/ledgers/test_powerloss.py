"""A short campaign of `tests.ledgers.powerloss`; the long one is `make powerloss`."""

from __future__ import annotations

from random import Random

import pytest

from tests.budget import examples

from .powerloss.campaign import LIVES, Control, campaign
from .powerloss.disk import SECTOR, Disk, DiskFull, InputOutputError, Plan, PowerLost

POINTS = examples(300)
CONTROL_SEEDS = 10


@pytest.mark.parametrize("seed", [1_000, pytest.param(2_000, marks=pytest.mark.slow)])
def test_nothing_acknowledged_is_lost_with_the_power(seed: int) -> None:
    tally, caught = campaign(points=POINTS // 2, seed=seed)
    assert caught == []
    # What the campaign claims to have seen, it has seen.
    assert tally.points >= POINTS // 2
    assert tally.calls > tally.points
    assert tally.under_way > tally.survived > 0
    assert tally.in_recovery > 0
    assert "LedgerBroken" in tally.failed


@pytest.mark.parametrize("control", ["normal", "lies"])
def test_a_book_that_does_not_wait_for_the_disk_is_caught(control: Control) -> None:
    """Negative controls: a campaign that never catches anything proves nothing."""
    _, caught = campaign(points=CONTROL_SEEDS * LIVES, control=control)
    assert caught


# -- the disk itself --------------------------------------------------------------------------------------

OLD, NEW = bytes(SECTOR * 4), b"\x01" * (SECTOR * 4)


def _after(disk: Disk, seed: int) -> bytes:
    return disk.after_power_loss(Random(seed))["f"]


def test_what_was_synced_is_kept() -> None:
    disk = Disk({"f": OLD})
    disk.write("f", 0, NEW)
    disk.sync("f")
    assert {_after(disk, seed) for seed in range(50)} == {NEW}


def test_what_was_not_synced_is_kept_dropped_mixed_or_torn() -> None:
    disk = Disk({"f": OLD})
    disk.write("f", 0, NEW)
    found = {_after(disk, seed) for seed in range(300)}
    assert {OLD, NEW} <= found
    sectors = [{data[at : at + SECTOR] for at in range(0, len(data), SECTOR)} for data in found]
    assert any(kinds == {OLD[:SECTOR], NEW[:SECTOR]} for kinds in sectors), "sectors are kept one by one"
    assert any(len({*kind}) == 2 for kinds in sectors for kind in kinds), "sectors are torn"


def test_writes_between_two_syncs_come_in_any_order() -> None:
    disk = Disk({"f": OLD})
    disk.write("f", 0, b"\x01" * SECTOR)
    disk.write("f", 0, b"\x02" * SECTOR)
    first_bytes = {_after(disk, seed)[0] for seed in range(200)}
    assert first_bytes == {0, 1, 2}


def test_a_lying_sync_keeps_nothing_safe() -> None:
    disk = Disk({"f": OLD}, Plan(lies=True))
    disk.write("f", 0, NEW)
    disk.sync("f")
    assert OLD in {_after(disk, seed) for seed in range(50)}


def test_pages_of_a_failed_sync_are_gone_although_readers_see_them_and_the_next_sync_succeeds() -> None:
    disk = Disk({"f": OLD}, Plan(fault="sync", fault_at=1))
    disk.write("f", 0, NEW)
    with pytest.raises(InputOutputError):
        disk.sync("f")
    assert disk.read("f", 0, len(NEW)) == NEW
    disk.sync("f")
    assert {_after(disk, seed) for seed in range(50)} == {OLD}


def test_a_full_disk_takes_nothing_for_as_long_as_planned() -> None:
    disk = Disk({"f": OLD}, Plan(fault="full", fault_at=1, fault_calls=2))
    for _ in range(2):
        with pytest.raises(DiskFull):
            disk.write("f", 0, NEW)
    disk.write("f", 0, NEW)
    assert disk.read("f", 0, 1) == NEW[:1]


def test_a_new_file_is_named_for_certain_once_its_directory_is_synced() -> None:
    disk = Disk()
    disk.create("f", names=False)
    disk.sync("f")
    assert {"f" in disk.after_power_loss(Random(seed)) for seed in range(50)} == {True, False}
    disk.create("log", names=True)
    disk.sync("log")
    assert {"f" in disk.after_power_loss(Random(seed)) for seed in range(50)} == {True}


def test_a_deleted_file_may_come_back_until_its_directory_is_synced() -> None:
    disk = Disk({"f": OLD})
    disk.delete("f", sync_directory=False)
    assert {"f" in disk.after_power_loss(Random(seed)) for seed in range(50)} == {True, False}
    disk = Disk({"f": OLD})
    disk.delete("f", sync_directory=True)
    assert {"f" in disk.after_power_loss(Random(seed)) for seed in range(50)} == {False}


@pytest.mark.parametrize("completes", [True, False])
def test_the_power_may_go_before_or_after_a_sync_has_done_its_work(completes: bool) -> None:
    disk = Disk({"f": OLD}, Plan(lost_at_sync=2, sync_completes=completes))
    disk.sync("f")
    disk.write("f", 0, NEW)
    with pytest.raises(PowerLost):
        disk.sync("f")
    assert ({_after(disk, seed) for seed in range(50)} == {NEW}) is completes


def test_a_dead_disk_answers_nothing() -> None:
    disk = Disk({"f": OLD}, Plan(power_lost_at=2))
    disk.write("f", 0, NEW)
    for _ in range(2):
        with pytest.raises(PowerLost):
            disk.read("f", 0, 1)
