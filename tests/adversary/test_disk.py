"""One event to endpoints that answer at length and for ever: it costs bounded bytes, and never the process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from surehook.core.limits import ANSWER_BYTES_LATER, ANSWERS_WHOLE, VERDICT_BYTES
from tests.e2e.calling import until
from tests.e2e.faults.place import Impossible, Place, command
from tests.e2e.faults.room import MIB, fill, free, small_disk
from tests.e2e.receivers import Reply
from tests.e2e.shop import Shop

pytestmark = [pytest.mark.slow, pytest.mark.adversary]

ENDPOINTS, RETRIES = 30, 100
INSISTS = {
    "profile": "standard",
    "breaker": None,
    "schedule": {"fixed": [0.01] * RETRIES},
    "jitter": None,
    "auto_disable": None,
}
LONG = Reply(500, body=b"\xff" * VERDICT_BYTES)
LINE = 1_500  # bytes of a line of history beside what the answer said, of its index, and of half-empty pages
KEPT = (ANSWERS_WHOLE + 1) * (VERDICT_BYTES + LINE) + RETRIES * (ANSWER_BYTES_LATER + LINE)
FLOOR = 64 * MIB


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    try:
        with small_disk(tmp_path, 200) as made:
            yield made
    except Impossible as why:
        pytest.skip(str(why))


def attempts(shop: Shop) -> int:
    lines = [
        line
        for line in shop.api.ask("GET", "/metrics").body.decode().splitlines()
        if line.startswith("surehook_attempts_total{")
    ]
    return int(sum(float(line.rsplit(" ", 1)[1]) for line in lines))


def attack(shop: Shop) -> str:
    """One event to all; its id."""
    tenant, spot = shop.tenant(), shop.receiver.spot(LONG)
    for _ in range(ENDPOINTS):
        shop.endpoint(tenant, spot.url, policy=INSISTS)
    return shop.publish(tenant)


def test_one_event_that_is_answered_at_length_for_ever_costs_bounded_bytes(
    disk: Path, tmp_path: Path
) -> None:
    with Place(tmp_path).shop(folder=disk, SUREHOOK_DISK_FLOOR_MB="64") as shop:
        before = free(disk)
        attack(shop)
        until(lambda: attempts(shop) >= ENDPOINTS * (RETRIES + 1), "all have given up", 60)
        used = before - free(disk)
        assert shop.server.alive() and shop.server.api.ready()
        assert used <= ENDPOINTS * KEPT + 24 * MIB, "more than the log of the file and what is kept"


def test_below_half_of_the_floor_it_stands_still_and_goes_on_with_room(disk: Path, tmp_path: Path) -> None:
    with Place(tmp_path).shop(folder=disk, SUREHOOK_DISK_FLOOR_MB="64") as shop:
        attack(shop)
        until(lambda: attempts(shop) >= ENDPOINTS * 5, "the attack is under way")
        ballast = fill(disk, leave=FLOOR // 2 - 4 * MIB)
        until(lambda: '"disk.sending_paused"' in shop.log, "the log says that nothing is sent")
        time.sleep(1.5)  # a beat, and what was under way
        stood, left = attempts(shop), free(disk)
        assert stood < ENDPOINTS * (RETRIES + 1), "nothing was left to stand still"
        time.sleep(1.0)
        assert attempts(shop) == stood and left - free(disk) <= MIB
        assert shop.server.alive() and not shop.server.api.ready()

        ballast.unlink()
        until(lambda: attempts(shop) >= ENDPOINTS * (RETRIES + 1), "all have given up", 60)
        until(shop.server.api.ready, "events are taken again")
        assert '"disk.sending_resumed"' in shop.log


def test_a_start_on_a_full_disk_names_the_disk_and_ends_with_status_1(disk: Path, tmp_path: Path) -> None:
    with Place(tmp_path).shop(folder=disk) as shop:
        shop.publish(shop.tenant())
        shop.server.kill()
        ballast = fill(disk, leave=0)
        ended = command("serve", folder=disk, seconds=10)
        assert ended.returncode == 1, ended
        assert (
            f"the disk of {disk}/surehook.db is full" in ended.stderr and "free some space" in ended.stderr
        ), ended
        ballast.unlink()
        shop.start()
        assert len(list(shop.api.pages("/v1/events", tenant="tenant-1"))) == 1
