"""A worker process serves its own metrics, where it is told to."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import pytest

from surehook.cli.worker_metrics import serve_metrics
from surehook.core.errors import SettingsError
from surehook.inbox import Inbox
from tests.inbox.house import call, message, partner


def test_a_worker_serves_what_it_counts(tmp_path: Path) -> None:
    inbox = Inbox(f"sqlite:///{tmp_path / 'inbox.db'}", [partner()])
    inbox.create_tables()
    inbox.on("partner", "*")(lambda event, tx: None)
    address = serve_metrics(inbox.collector(), "127.0.0.1:0")
    assert address.startswith("http://127.0.0.1:") and address.endswith("/metrics")
    assert inbox.receive(call(*message("evt_1"), at=inbox.clock.now())).status == 200
    inbox.work()
    with urllib.request.urlopen(address, timeout=10) as answer:
        text = answer.read().decode()
    assert 'surehook_inbox_runs_total{replay="no",source="partner",state="finalized"} 1.0' in text
    inbox.close()


@pytest.mark.parametrize("where", ["9109", ":9109", "127.0.0.1:", "127.0.0.1:many", "127.0.0.1:99999", "::1"])
def test_what_is_no_address_is_refused_with_one_that_is(where: str) -> None:
    with pytest.raises(SettingsError) as caught:
        serve_metrics(Inbox("sqlite://", [partner()]).collector(), where)
    assert (caught.value.key, caught.value.hint) == ("metrics", "--metrics 127.0.0.1:9109")


def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        where = "{}:{}".format(*taken.getsockname())
        with pytest.raises(SettingsError, match=f"cannot listen on {where}: Address already in use"):
            serve_metrics(Inbox("sqlite://", [partner()]).collector(), where)
