"""What a running server writes: dated lines of one form, few of a kind, whatever comes to it."""

from __future__ import annotations

import json
import re
import shutil
import socket
from collections import Counter
from pathlib import Path
from typing import Any

from surehook.telemetry.lines import LINES_PER_MIN
from tests.e2e.calling import Caller, until
from tests.e2e.shop import Shop

DATED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
# What the command says to who began it.
GREETING = re.compile(r"surehook listens on |  (ledger|API|ON|settings) ")


def lines(shop: Shop) -> list[dict[str, Any]]:
    """Every line of the log; each must be of the one form."""
    found = [json.loads(line) for line in shop.log.splitlines() if not GREETING.match(line)]
    assert all(DATED.fullmatch(line["at"]) and line["level"] and line["event"] for line in found)
    return found


def told(shop: Shop, event: str) -> list[dict[str, Any]]:
    return [line for line in lines(shop) if line["event"] == event]


def test_bad_packets_and_refused_keys_cost_few_lines_and_all_of_them_are_dated(alone: Shop) -> None:
    for _ in range(300):
        with socket.create_connection(("127.0.0.1", alone.server.port)) as caller:
            caller.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
            caller.recv(1_000)
    stranger = Caller(alone.server.port, "not-a-key-of-this-server")
    for _ in range(300):
        stranger.ask("GET", "/v1/lanes")
    stranger.close()
    (refused,) = told(alone, "key.refused")
    assert refused["address"] == "127.0.0.1" and refused["level"] == "warning"

    assert max(Counter(line["event"] for line in lines(alone)).values()) <= LINES_PER_MIN


def test_a_change_of_the_configuration_is_in_the_log_without_its_secrets(alone: Shop) -> None:
    tenant = alone.tenant()
    alone.endpoint(tenant, "http://127.0.0.1:9999/", headers={"x-api-key": "what-nobody-may-read"})
    made = told(alone, "config.changed")

    assert [line["call"] for line in made] == ["create_tenant", "create_endpoint"]
    assert "headers" in made[1]["fields"] and made[1]["by"] == "api_key of the settings"
    assert "what-nobody-may-read" not in alone.log


def test_a_server_at_the_floor_of_its_disk_says_so_and_is_not_ready(tmp_path: Path) -> None:
    # Below it by a third: at half of it nothing is sent.
    floor_mb = (shutil.disk_usage(tmp_path).free >> 20) * 3 // 2
    shop = Shop(tmp_path, SUREHOOK_DISK_FLOOR_MB=str(floor_mb))
    try:
        shop.server.start()
        until(lambda: "disk.floor_reached" in shop.log, "the floor is told", 30)
        until(lambda: "listens on" in shop.log, "it serves", 30)
        answer = shop.api.ask("GET", "/readyz")
        assert answer.status == 503 and "disk is at its floor" in answer.json["detail"]
        (reached,) = told(shop, "disk.floor_reached")
        noticed = until(
            lambda: shop.api.get("/v1/notices", kind="disk.floor_reached")["data"], "it is noticed", 30
        )
        assert [(each["tenant"], each["endpoint"]) for each in noticed] == [("", None)]
        assert reached["level"] == "warning" and reached["floor_bytes"] == floor_mb << 20
    finally:
        shop.close()


def metrics(shop: Shop) -> dict[str, str]:
    text = shop.api.ask("GET", "/metrics").body.decode()
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))


def test_the_metrics_of_a_server_show_its_door_its_machine_and_what_runs(alone: Shop) -> None:
    tenant = alone.tenant()
    alone.endpoint(tenant, alone.receiver.spot().url)
    alone.finished(alone.publish(tenant))
    alone.api.refused("POST", "/v1/events", {"tenant": "nobody", "type": "a.b", "data": 1})
    stranger = Caller(alone.server.port, "not-a-key-of-this-server")
    stranger.ask("POST", "/v1/events/batch", [])
    stranger.close()
    until(
        lambda: float(metrics(alone)["surehook_loop_lateness_seconds_count"]) > 0,
        "its pulse was felt once",
        10,
    )
    samples = metrics(alone)

    assert samples['surehook_http_requests_total{method="POST",route="/v1/events",status="202"}'] == "1.0"
    assert samples['surehook_http_requests_total{method="POST",route="/v1/events",status="422"}'] == "1.0"
    assert (
        samples['surehook_http_requests_total{method="POST",route="/v1/events/batch",status="401"}'] == "1.0"
    )
    assert samples['surehook_http_request_seconds_count{method="POST",route="/v1/events"}'] == "2.0"
    assert samples['surehook_endpoints{status="active"}'] == "1.0"
    for name in (
        "surehook_ledger_bytes",
        "surehook_ledger_disk_free_bytes",
        "surehook_process_open_descriptors",
        "surehook_process_resident_bytes",
    ):
        assert float(samples[name]) > 0
    (build,) = [name for name in samples if name.startswith("surehook_build_info")]
    assert 'version="' in build and 'ledger="sqlite"' in build and 'role="all"' in build
