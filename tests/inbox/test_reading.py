"""Lists are bounded: by what they look at, by rows, by bytes; and say where they go on."""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import closing

import pytest
from sqlalchemy import make_url

from surehook.cli.main import run as command
from surehook.core import instants
from surehook.core.errors import Problem
from surehook.inbox import operations
from surehook.inbox.sql import engines
from tests.inbox.conftest import KINDS
from tests.inbox.house import NOW


@pytest.fixture
def looks(monkeypatch):
    monkeypatch.setattr(operations, "LOOKS", 10)


def arrived(house, numbers, type="document.signed"):
    for n in numbers:
        house.clock.passes(1)
        house.receive(f"evt_{n:02}", type)


def walked(house, **wanted):
    """The pages of a list to its end, by the ids on each."""
    pages, until = [], None
    while len(pages) < 50:
        page = house.do(house.inbox.page(until=until, **wanted))
        pages.append([one.id for one in page.events])
        if (until := page.until) is None:
            return pages
    pytest.fail("it has no end")


def test_a_page_looks_at_so_many_events_and_says_how_far_it_came(house, looks):
    arrived(house, [0], "invoice.paid")
    arrived(house, range(1, 31))
    page = house.do(house.inbox.page(type="invoice.*"))
    assert (page.events, page.until) == ([], instants.render(NOW + 22_000))
    assert walked(house, type="invoice.*") == [[], [], [], ["evt_00"]]


def test_a_page_that_is_full_or_has_looked_at_everything_names_no_instant(house, looks):
    arrived(house, range(30))
    page = house.do(house.inbox.page(limit=3))
    assert ([one.id for one in page.events], page.until) == (["evt_29", "evt_28", "evt_27"], None)
    assert house.do(house.inbox.page(limit=20, since=NOW + 25_000)).until is None
    assert sum(len(page) for page in walked(house, limit=20)) == 30


def test_events_of_one_instant_are_on_one_page(house, looks):
    for n in range(15):
        house.receive(f"evt_{n:02}")
    assert sorted(id for page in walked(house, limit=100) for id in page) == [
        f"evt_{n:02}" for n in range(15)
    ]


def test_what_stands_still_is_found_at_once_however_far_back_it_is(house, looks):
    house.on(pattern="document.*")
    arrived(house, [0], "invoice.paid")
    arrived(house, range(1, 31))
    house.work()
    assert walked(house, state="parked") == [["evt_00"]]
    assert walked(house, state="parked", type="document.*") == [[]]
    arrived(house, range(31, 46), "invoice.paid")
    house.work()
    pages = walked(house, state="parked")
    assert len(pages) > 1, "too many stand still for that"
    assert [id for page in pages for id in page] == [f"evt_{n:02}" for n in [*range(45, 30, -1), 0]]


def test_one_event_is_found_at_once(house, looks):
    arrived(house, range(30))
    assert walked(house, source="partner", tenant="", id="evt_00") == [["evt_00"]]
    ref = house.events(id="evt_00")[0].ref
    assert walked(house, ref=ref) == [["evt_00"]]
    assert house.events(id="evt_00")[0].ref == ref, "`events` looks as far as it must"


def test_conflicts_are_listed_in_pages_without_their_bodies(house):
    arrived(house, range(5))
    for n in range(5):
        house.clock.passes(1)
        house.receive(f"evt_{n:02}", word="other")
    newest = house.do(house.inbox.conflicts(limit=3))
    assert [one.id for one in newest] == ["evt_04", "evt_03", "evt_02"]
    assert not hasattr(newest[0], "body")
    rest = house.do(house.inbox.conflicts(limit=3, before=newest[-1].conflict))
    assert [one.id for one in rest] == ["evt_01", "evt_00"]
    shown = house.do(house.inbox.show(newest[0].ref))
    (other,) = shown.others
    assert json.loads(other.body)["word"] == "other" and len(other.body) == newest[0].body_bytes
    with pytest.raises(Problem, match="no reference"):
        house.do(house.inbox.conflicts(before="yesterday"))


def test_a_body_past_its_retention_has_no_length(house):
    house.receive("evt_1")
    house.receive("evt_1", word="other")
    house.on()
    house.work()
    house.clock.passes(40 * 86_400)
    house.do(house.inbox.prune())
    (kept,) = house.do(house.inbox.conflicts())
    assert kept.body_bytes is None
    assert [one.body for one in house.do(house.inbox.show(kept.ref)).others] == [None]


def test_the_looks_go_by_an_index(ground, house):
    kind, url = ground
    if kind == "django":
        pytest.skip("plans are compared on a connection of SQLAlchemy's")
    if not url.startswith("sqlite"):
        pytest.skip("plans are compared on SQLite, whose words are stable")
    plans = {
        "select received_at from surehook_inbox_events where received_at < 1 order by received_at desc limit 1 offset 9": (
            "USING COVERING INDEX surehook_inbox_events_received"
        ),
        "select id from surehook_inbox_conflicts where id < x'00' order by id desc limit 9": "SEARCH surehook_inbox_conflicts",
        "select event from surehook_inbox_tries where event < x'00' order by event limit 9": "SEARCH surehook_inbox_tries",
    }
    for statement, words in plans.items():
        told = " ".join(row[-1] for row in house.sql(f"explain query plan {statement}"))
        assert words in told and "B-TREE" not in told, told


@pytest.mark.parametrize("ground", [("sqlite", kind) for kind in KINDS], ids=KINDS, indirect=True)
def test_nobody_who_only_reads_waits_for_the_one_who_writes_or_keeps_others_from_writing(house, ground):
    arrived(house, range(3))
    (ref,) = (one.ref for one in house.do(house.inbox.events(limit=1)))
    inbox = house.inbox
    reads = {
        "events": lambda: inbox.events(),
        "page": lambda: inbox.page(state="held"),
        "show": lambda: inbox.show(ref),
        "conflicts": lambda: inbox.conflicts(),
        "counts": lambda: inbox.counts(),
        "depth": lambda: inbox.depth(),
        "metrics": lambda: inbox.metrics(),
        "explain": lambda: inbox.explain("doc_1"),
    }
    with closing(sqlite3.connect(make_url(ground[1]).database, isolation_level=None)) as writer:
        writer.execute("pragma journal_mode=wal")  # Django's own choice is another
        writer.execute("begin immediate")
        for name, read in reads.items():
            began = time.monotonic()
            house.do(read())
            assert time.monotonic() - began < engines.BUSY_MS / 2000, name
        writer.execute("rollback")

    def read_beside(transaction):
        transaction.only_reads()
        seen = transaction.counts()
        with closing(sqlite3.connect(make_url(ground[1]).database, timeout=0)) as other:
            other.execute("delete from effects")
            other.commit()
        return seen

    assert sum(house.do(inbox.store.run(read_beside)).values()) == 3


def test_the_commands_say_where_a_list_goes_on(tmp_path, monkeypatch, capsys, looks):
    (tmp_path / "listed_inbox.py").write_text(
        "from surehook.inbox import Inbox\n"
        "from tests.inbox.house import Clock, call, message, partner\n"
        f"inbox = Inbox('sqlite:///{tmp_path / 'inbox.db'}', [partner()], clock=Clock())\n"
        "inbox.create_tables()\n"
        "for n in range(12):\n"
        "    inbox.clock.passes(1)\n"
        "    for word in ('one', 'two'):\n"
        "        inbox.receive(call(*message(f'evt_{n:02}', word=word), at=inbox.clock.now()))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "listed_inbox", raising=False)
    place = "listed_inbox:inbox"
    assert command(["inbox", "events", place, "--type", "invoice.*"]) == 0
    said = capsys.readouterr().err
    until = instants.render(NOW + 3_000)
    assert f"looked through until {until}: --until {until} goes on" in said
    assert command(["inbox", "events", place, "--type", "invoice.*", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"data": [], "next": until}
    assert command(["inbox", "conflicts", place, "--limit", "10", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert len(told["data"]) == 10 and told["next"] == told["data"][-1]["conflict"]
    assert command(["inbox", "conflicts", place, "--before", told["next"], "--json"]) == 0
    rest = json.loads(capsys.readouterr().out)
    assert ([one["id"] for one in rest["data"]], rest["next"]) == (["evt_01", "evt_00"], None)
    assert command(["inbox", "show", place, rest["data"][0]["ref"]]) == 0
    shown = capsys.readouterr().out
    assert "another body came at" in shown and '"word": "two"' in shown
    assert command(["inbox", "stats", place]) == 0
    assert "partner: the oldest has been due for" in capsys.readouterr().err
