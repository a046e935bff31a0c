"""The inbox's page on watching: its examples run, its table of metrics is that of a scrape, its commands do what it says."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from importlib import import_module

import httpx
import pytest
from typer.testing import CliRunner

from surehook.cli.main import app
from surehook.core.histogram import Histogram
from surehook.inbox import Inbox, operations
from surehook.inbox.prometheus import Collector
from surehook.inbox.queue.port import Length
from surehook.inbox.watch import Watch
from surehook.ports.inbox import Stored
from surehook.ports.inbox_depth import Depth
from tests.docs.pages import examples, section
from tests.inbox.house import NOW, SECRET, Clock, call, message, partner

PAGE = "docs/inbox.md"


def scrape() -> str:
    """A scrape in which every metric has a sample."""
    watch = Watch()
    watch.arrived("s", [Stored("new", b"")])
    watch.duplicate("s", [], "1")
    watch.put_in_queue("s")
    watch.saw_queue(Length(1, 0))
    watch.runs["s", "finalized", "no"] = watch.retries["s", "later", "1"] = watch.dead["s", "later", "1"] = 1
    watch.decisions["s", "signing", "early", "gap"] = watch.changed["s"] = 1
    watch.latency["s"] = Histogram((1,))
    watch.saw([Depth(source="s")], 1)
    return Collector(watch, lambda: {("s", "bad_signature"): 1}, lambda: 1).render().decode()


def test_the_metrics_and_their_labels_are_those_of_a_scrape():
    scraped = scrape()
    named = re.findall(r"^\| `(\w+)` \|([^|]*)\| .* \|$", section(PAGE, "Watch"), re.MULTILINE)
    listed = {name: sorted(labels.strip().split(", ")) if labels.strip() else [] for name, labels in named}
    assert set(listed) == set(re.findall(r"^# TYPE (\w+)", scraped, re.MULTILINE))
    samples = re.findall(r"^(\w+?)(?:_bucket)?(?:\{(.*)\})? ", scraped, re.MULTILINE)
    found = {
        name: sorted(set(re.findall(r'(\w+)="', labels)) - {"le"})
        for name, labels in samples
        if name in listed
    }
    assert found == listed


def test_the_example_of_a_scrape_answers(tmp_path):
    scope = {"DATABASE": f"sqlite:///{tmp_path / 'app.db'}", "SECRET": SECRET, "__name__": "example"}
    exec(compile(examples(PAGE)["metrics"], PAGE, "exec"), scope)

    async def go():
        await scope["inbox"].create_tables()
        transport = httpx.ASGITransport(scope["app"])
        async with httpx.AsyncClient(transport=transport, base_url="http://app") as client:
            answer = await client.get("/metrics")
        await scope["inbox"].close()
        return answer.text

    assert "# TYPE surehook_inbox_events_total counter" in asyncio.run(go())


def test_the_example_of_spans_is_called_for_each_change(tmp_path, caplog):
    inbox = Inbox(f"sqlite:///{tmp_path / 'inbox.db'}", [partner()], clock=Clock())
    inbox.create_tables()
    exec(compile(examples(PAGE)["observe"], PAGE, "exec"), {"inbox": inbox, "__name__": "example"})
    heard = []
    inbox.observe(heard.append)  # after that of the page, which fails loudly if it fails
    inbox.on("partner")(lambda event, tx: None)
    inbox.receive(call(*message("evt_1"), at=NOW))
    inbox.work()
    inbox.close()
    assert [one.kind for one in heard] == ["event.ended"]
    assert len(inbox.transitions._observers) == 2
    assert "an observer of the inbox failed" not in caplog.text


def test_metrics_without_their_package_say_what_to_install():
    code = (
        "import sys; sys.modules['prometheus_client'] = None\n"
        "from surehook.inbox import Inbox\n"
        "try: Inbox('sqlite://').collector()\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "SettingsError" in said and "surehook[inbox,metrics]" in said


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An application with an inbox, as the command line finds it."""
    (tmp_path / "shop_hooks.py").write_text(
        "from tests.inbox.house import Clock, partner\n"
        "from surehook.inbox import AsyncInbox, Inbox\n"
        f"inbox = Inbox('sqlite:///{tmp_path / 'inbox.db'}', [partner()], clock=Clock())\n"
        f"waiting = AsyncInbox('sqlite:///{tmp_path / 'inbox.db'}', [partner()], clock=Clock())\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield "shop_hooks"
    sys.modules.pop("shop_hooks", None)


def test_stats_count_what_waits(place):
    inbox = import_module(place).inbox
    inbox.create_tables()
    assert invoked("stats", f"{place}:inbox", "--json") == {"data": [], "next": None}
    inbox.receive(call(*message("evt_1"), at=NOW))
    for name in ("inbox", "waiting"):
        (row,) = invoked("stats", f"{place}:{name}", "--json")["data"]
        assert (row["source"], row["ready"], row["dead"]) == ("partner", 1, 0)
        assert row["oldest_due_at"] == "2025-11-24T16:00:00.000Z"
    inbox.close()


@pytest.mark.parametrize("name", ["inbox", "waiting"])
def test_prune_removes_all_that_is_old_and_finished_in_portions(place, name):
    module = import_module(place)
    inbox = module.inbox
    inbox.create_tables()
    inbox.on("partner")(lambda event, tx: None)
    for n in range(5):
        inbox.receive(call(*message(f"evt_{n}"), at=NOW))
    inbox.work()
    getattr(module, name).clock.passes(40 * 86_400)
    portion, operations.PORTION = operations.PORTION, 2
    try:
        assert invoked("prune", f"{place}:{name}", "--json") == {"requests": 5, "events": 0}
        assert invoked("prune", f"{place}:{name}", "--events-days", "35", "--json") == {
            "requests": 0,
            "events": 5,
        }
    finally:
        operations.PORTION = portion
    inbox.close()


def invoked(*words):
    result = CliRunner().invoke(app, ["inbox", *words])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)
