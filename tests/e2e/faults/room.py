"""Disks that fill, copies made meanwhile, and a process without file descriptors."""

from __future__ import annotations

import os
import shlex
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lab.bench.processes import memory_mb
from lab.bench.server import KEY, product_command
from tests.e2e.calling import Caller, until
from tests.e2e.faults.place import Impossible, Place, Publisher, account, check_refusal, command
from tests.e2e.receivers import Reply

MIB = 1 << 20


@contextmanager
def small_disk(folder: Path, mib: int) -> Iterator[Path]:
    """A disk of so many MiB. Raises Impossible where it may not be made."""
    disk = folder / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise Impossible(f"no small disk can be mounted: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def free(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def fill(disk: Path, leave: int) -> Path:
    """Take all but `leave` bytes."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file, suppress(OSError):
        while (left := free(disk) - leave) > 0:
            file.write(b"x" * min(left, MIB))
            file.flush()
    return ballast


def disk_floor(place: Place) -> dict[str, Any]:
    """Below the floor of free bytes events are refused with 503 and Retry-After, and /readyz says so; reading and sending
    go on, and with room events are taken again."""
    with small_disk(place.folder, 128) as disk, place.shop(folder=disk, SUREHOOK_DISK_FLOOR_MB="64") as shop:
        tenant, spot = shop.tenant(), shop.receiver.spot()
        shop.endpoint(tenant, spot.url)
        with Publisher(shop, tenant) as publisher:
            publisher.until(20)
            ballast = fill(disk, leave=48 * MIB)  # room for the second until it looks: the log grows 10 MiB/s
            publisher.refused(20)
            assert publisher.retry_after and all(str(each).isdigit() for each in publisher.retry_after)
            refused = shop.api.refused("POST", "/v1/events", {"tenant": tenant, "type": "a", "data": 1})
            assert (refused["status"], refused["code"]) == (503, "disk_full")
            batch = shop.api.ask("POST", "/v1/events/batch", [{"tenant": tenant, "type": "a", "data": 1}])
            assert batch.status == 503 or all(item.get("status") == 503 for item in batch.json), batch
            large, held_mb = (
                {"tenant": tenant, "type": "a", "data": "z" * 250_000},
                memory_mb(shop.server.pid)[0],
            )
            for _ in range(200):
                shop.api.refused("POST", "/v1/events", large)
            assert memory_mb(shop.server.pid)[0] < held_mb + 40, "refused events are kept"
            accepted = len(publisher.accepted)
            assert shop.api.get("/v1/lanes")
            until(lambda: not shop.server.api.ready(), "/readyz says that every publish would be refused")
            time.sleep(0.3)
            assert len(publisher.accepted) == accepted
            ballast.unlink()
            publisher.until(20)
            until(shop.server.api.ready, "/readyz says that events are taken")
        return account(shop, tenant, publisher, spot)


def disk_full(place: Place) -> dict[str, Any]:
    """With no byte left and no floor, no 202 is false: a server whose commit failed answers 503, or ends and says why,
    as a commit that failed is not tried again on the same file; started with room it has all it answered for."""
    with small_disk(place.folder, 48) as disk, place.shop(folder=disk, SUREHOOK_DISK_FLOOR_MB="0") as shop:
        tenant, spot = shop.tenant(), shop.receiver.spot()
        shop.endpoint(tenant, spot.url)
        with Publisher(shop, tenant) as publisher:
            publisher.until(20)
            ballast = fill(disk, leave=0)
            until(lambda: publisher.statuses[503] > 20 or not shop.server.alive(), "refusals, or an end")
            if shop.server.alive():
                ended = "by kill"
                shop.server.kill()
            else:
                ended = "by itself"
                assert shop.server.process is not None and shop.server.process.returncode == 1
                assert "disk is full" in shop.log and "Traceback" not in shop.log
            refused = (
                command("serve", folder=disk, seconds=10, SUREHOOK_DISK_FLOOR_MB="0")
                if free(disk) == 0
                else None
            )
            assert refused is None or "free some space" in check_refusal(refused)
            assert refused is None or refused.returncode == 1, refused
            ballast.unlink()
            shop.start()
            publisher.until(20)
        return {**account(shop, tenant, publisher, spot), "ended": ended}


def backup_under_load(place: Place) -> dict[str, Any]:
    """A copy made under load is whole, holds every event answered before it began, and can be served."""
    copy = place.folder / "copy"
    copy.mkdir()
    with place.shop() as shop:
        tenant, spot = shop.tenant(), shop.receiver.spot()
        endpoint = shop.endpoint(tenant, spot.url)
        with Publisher(shop, tenant) as publisher:
            publisher.until(100)
            before = set(publisher.accepted)
            began = time.monotonic()
            ended = command("backup", str(copy / "surehook.db"), folder=place.folder)
            took = time.monotonic() - began
            assert ended.returncode == 0, ended
            publisher.until(20)
        found = account(shop, tenant, publisher, spot)
        again = command("backup", str(copy / "surehook.db"), folder=place.folder)
        assert again.returncode not in (0, 1) or "Traceback" not in again.stderr
        assert again.returncode != 0, "a copy never overwrites"
    connection = sqlite3.connect(copy / "surehook.db")
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    assert connection.execute("pragma foreign_key_check").fetchall() == []
    connection.close()
    with place.shop(folder=copy) as restored:
        rows = {row["id"] for row in restored.api.pages("/v1/events", tenant=tenant, limit=200)}
        assert before <= rows, f"{len(before - rows)} events are missing in the copy"
        assert restored.api.get(f"/v1/endpoints/{endpoint['id']}")["url"] == spot.url
    return {**found, "copied": len(rows), "backup_s": round(took, 2)}


def no_file_descriptors(place: Place) -> dict[str, Any]:
    """Without free descriptors the server lives and answers; what it could not send is not the endpoint's fault."""
    limit = 72
    serve = ("bash", "-c", f"ulimit -n {limit}; exec {shlex.join(product_command())}")
    with place.shop(serve, SUREHOOK_ENDPOINT_SLOTS="64") as shop:
        tenant, other = shop.tenant(), shop.tenant()
        let_go = threading.Event()

        def wait(_: object) -> Reply:
            let_go.wait(20)
            return Reply(200)

        holding, healthy = shop.receiver.spot(rule=wait), shop.receiver.spot()
        patient = {"timeouts": {"first": 25, "retry": 25}, "schedule": {"fixed": [0.3] * 20}, "jitter": None}
        shop.endpoint(tenant, holding.url, policy=patient)
        insist = {"profile": "insigner", "schedule": {"fixed": [0.3] * 20}, "jitter": None}
        endpoint = shop.endpoint(other, healthy.url, policy=insist)
        answers = shop.api.post(
            "/v1/events/batch", [{"tenant": tenant, "type": "a", "data": n} for n in range(120)], 202
        )
        until(lambda: _descriptors(shop.server.pid) >= limit - 4, "all descriptors are taken")
        starved = [shop.publish(other, data=n) for n in range(5)]
        assert shop.api.get("/healthz") and shop.api.get("/v1/lanes"), "an open connection is still answered"
        time.sleep(1.0)
        shown = shop.api.get(f"/v1/endpoints/{endpoint['id']}")
        assert shown["status"] == "active" and shown["failure_count"] == 0, shown
        let_go.set()
        fresh = Caller(shop.server.port, KEY)
        until(lambda: _answers(fresh), "a new connection is taken again", 15)
        fresh.close()
        for event in starved:
            assert shop.finished(event, 20)["state"] == "delivered"
        for answer in answers:
            assert shop.finished(answer["id"], 30)["state"] == "delivered"
        assert shop.api.get(f"/v1/endpoints/{endpoint['id']}")["failure_count"] == 0
        assert not [
            row for row in shop.notices(tenant) + shop.notices(other) if row["kind"].startswith("breaker")
        ]
        return {"limit": limit, "events": len(answers) + len(starved)}


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def _answers(caller: Caller) -> bool:
    try:
        return caller.ask("GET", "/healthz").status == 200
    except OSError:
        return False
