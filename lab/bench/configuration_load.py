"""Publishers and people who change filters, against one or two nodes, for a while; and what the nodes used meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.bench.configuration_fill import TENANTS, endpoint_id
from lab.bench.server import KEY, Server
from surehook.core import ids

PUBLISHERS = 16  # connections, for each node
CHANGERS = 8  # connections: a change must not wait for the one before it
STALL_S = 0.02  # a timer this late was held up by something that took too long at once
BUCKET = re.compile(r'^surehook_loop_lateness_seconds_bucket\{le="([^"]+)"\} (\S+)$', re.MULTILINE)


async def ask(connection: Any, method: str, path: str, body: Any) -> int:
    """One call on a kept connection; its status."""
    reader, writer = connection
    data = json.dumps(body).encode()
    writer.write(
        f"{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(data)}\r\n\r\n".encode()
        + data
    )
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if length is not None:
        await reader.readexactly(int(length[1]))
    return int(head[9:12])


async def publish(port: int, until: float, each_s: float, took: list[float], bad: list[int]) -> None:
    """One event after another, as fast as they are taken or, where `each_s` says so, at a pace."""
    connection = await asyncio.open_connection("127.0.0.1", port)
    first, number = time.perf_counter(), 0
    while (began := time.perf_counter()) < until:
        number += 1
        event = {"tenant": f"t{number % TENANTS}", "type": "nobody.wants", "data": {"n": number}}
        status = await ask(connection, "POST", "/v1/events", event)
        took.append(time.perf_counter() - began)
        if status != 202:
            bad.append(status)
        if each_s:
            await asyncio.sleep(max(0.0, first + number * each_s - time.perf_counter()))
    connection[1].close()


async def change(port: int, until: float, each_s: float, numbers: range, done: list[int]) -> None:
    """Change the filter of one endpoint after another, at a pace."""
    connection = await asyncio.open_connection("127.0.0.1", port)
    first = time.perf_counter()
    await asyncio.sleep(each_s * (numbers.start / numbers.step))
    for turn, number in enumerate(numbers, 1):
        if time.perf_counter() >= until:
            break
        id = ids.text(ids.ENDPOINT, endpoint_id(number * 7919 % numbers.stop))
        done.append(
            await ask(
                connection, "PATCH", f"/v1/endpoints/{id}", {"event_types": [f"document.v{time.time_ns()}"]}
            )
        )
        next_at = first + (turn + numbers.start / numbers.step) * each_s
        await asyncio.sleep(max(0.0, next_at - time.perf_counter()))
    connection[1].close()


async def window(
    servers: Sequence[Server], seconds: float, *, rate: int, changes: int, endpoints: int
) -> dict[str, float]:
    """`rate`: events a second at each node, 0: as many as they take. `changes`: a second, all at the first node."""
    used, late_before = [cpu_s(server.pid) for server in servers], [late(server) for server in servers]
    own_before = time.process_time()
    until = time.perf_counter() + seconds
    took: list[float] = []
    bad: list[int] = []
    done: list[int] = []
    each_s = PUBLISHERS / rate if rate else 0.0
    work = [publish(server.port, until, each_s, took, bad) for server in servers for _ in range(PUBLISHERS)]
    if changes:
        work += [
            change(servers[0].port, until, CHANGERS / changes, range(number, endpoints, CHANGERS), done)
            for number in range(CHANGERS)
        ]
    await asyncio.gather(*work)
    own = time.process_time() - own_before
    cpu = [cpu_s(server.pid) - before for server, before in zip(servers, used, strict=True)]
    late_after = [late(server) for server in servers]
    took.sort()
    return {
        "accepts_per_s": len(took) / seconds,
        "p50_ms": took[len(took) // 2] * 1000,
        "p99_ms": took[len(took) * 99 // 100] * 1000,
        "worst_ms": took[-1] * 1000,
        "refused": len(bad),
        "changes_per_s": sum(status == 200 for status in done) / seconds,
        "cpu_us_per_accept": sum(cpu) / len(took) * 1e6,
        "cpu_first_node": cpu[0] / seconds,
        "cpu_other_node": sum(cpu[1:]) / seconds,
        "cpu_bench": own / seconds,
        "late_below_ms": max(map(_latest, late_before, late_after)) * 1000,
        "late_over_20_ms": sum(map(_count_late, late_before, late_after)),
    }


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def late(server: Server) -> dict[float, float]:
    """Timers that fired at most so late, by seconds."""
    _, text = server.api.raw("GET", "/metrics")
    return {float(bound): float(count) for bound, count in BUCKET.findall(text.decode())}


def _count_late(before: dict[float, float], after: dict[float, float]) -> float:
    """The timers between the two looks that fired more than `STALL_S` late."""
    return (max(after.values()) - max(before.values())) - (after[STALL_S] - before[STALL_S])


def _latest(before: dict[float, float], after: dict[float, float]) -> float:
    """The bound in seconds under which every timer between the two looks fired."""
    total = max(after.values()) - max(before.values())
    return min((bound for bound in after if after[bound] - before[bound] >= total), default=0.0)
