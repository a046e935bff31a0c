"""Tables of an older version are brought up with what is in them, and nobody loses an event meanwhile."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import text

from surehook.cli.main import run
from surehook.core.errors import SettingsError
from surehook.inbox import Backoff, Inbox
from surehook.inbox.sql import ddl, engines, versions
from surehook.inbox.sql.tables import PREFIX, metadata
from surehook.ports.inbox import StoreError
from tests.docs.pages import section
from tests.inbox.house import Clock, House, call, message, partner

DATABASES = ["sqlite", "postgresql", "mariadb"]
# As `surehook inbox ddl` printed them when they had no versions: never changed.
FIRST = Path(__file__).parent / "tables_v1"


@contextmanager
def connected(url: str) -> Iterator[Any]:
    engine = engines.engine(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def ran(url: str, script: str) -> None:
    with connected(url) as connection:
        for statement in script.split(";\n"):
            if statement.strip():
                connection.execute(text(statement))


def first(url: str) -> None:
    """The tables of version 1, with two events as version 1 wrote them: one is finished, one waits."""
    ran(url, (FIRST / f"{url.partition(':')[0].partition('+')[0]}.sql").read_text())
    inbox = Inbox(url, [partner()], clock=Clock())
    inbox.on("partner", "document.signed")(lambda event, tx: None)
    for event_id, type in (("evt_1", "document.signed"), ("evt_2", "document.viewed")):
        assert inbox.receive(call(*message(event_id, type), at=inbox.clock.now())).status == 200
    inbox.close()
    with connected(url) as connection:
        connection.execute(
            text(
                "update surehook_inbox_runs set state = 'finalized', due_at = null where event in"
                " (select id from surehook_inbox_events where event_id = 'evt_1')"
            )
        )


def version_of(url: str) -> int:
    with connected(url) as connection:
        return versions.of(connection)


def schema_of(url: str) -> list[Any]:
    """Names, columns and indexes of all tables, as SQLAlchemy reads them."""
    from sqlalchemy import inspect

    with connected(url) as connection:
        seen = inspect(connection)
        return [
            (
                name,
                [(one["name"], str(one["type"]), one["nullable"]) for one in seen.get_columns(name)],
                seen.get_pk_constraint(name)["constrained_columns"],
                sorted(str(one["name"]) for one in seen.get_indexes(name)),
            )
            for name in sorted(seen.get_table_names())
            if name.startswith(PREFIX)
        ]


@pytest.fixture(params=DATABASES)
def url(request: pytest.FixtureRequest, ground_of: Callable[[str, str], tuple[str, str]]) -> str:
    return ground_of(request.param, "sync")[1]


def by_create_tables(url: str) -> None:
    inbox = Inbox(url)
    inbox.create_tables()
    inbox.close()


def by_printed(url: str) -> None:
    ran(url, ddl.script(url.partition(":")[0].partition("+")[0], version=1))


def by_revision(url: str) -> None:
    with connected(url) as connection:
        ddl.upgrade(connection)


@pytest.mark.parametrize("way", [by_create_tables, by_printed, by_revision])
def test_tables_of_the_first_version_become_those_of_today_with_what_is_in_them(way, url, ground_of):
    first(url)
    assert version_of(url) == 1
    way(url)
    assert version_of(url) == versions.CURRENT
    assert version_of(url) == max(versions.CAME)
    inbox = Inbox(url, [partner()], clock=Clock(), backoff=Backoff(attempts=1))
    assert {one.id: one.state for one in inbox.events()} == {"evt_1": "finalized", "evt_2": "accepted"}
    assert inbox.receive(call(*message("evt_1"), at=inbox.clock.now())).status == 200
    assert len(inbox.events()) == 2, "what was received before is known as a repeat"
    inbox.on("partner")(lambda event, tx: 1 / 0)
    inbox.work()
    assert {one.id: one.state for one in inbox.events()} == {"evt_1": "finalized", "evt_2": "dead"}
    inbox.close()


def test_to_show_an_event_on_tables_of_an_older_version_says_what_to_do(url):
    first(url)
    inbox = Inbox(url, [partner()], clock=Clock())
    with pytest.raises(
        StoreError, match=r"of version 1, and this surehook needs 3: `surehook inbox ddl --from 1`"
    ):
        inbox.show(inbox.events()[0].ref)
    inbox.close()


def test_upgraded_tables_are_those_that_are_made_anew(url):
    first(url)
    by_create_tables(url)
    upgraded = schema_of(url)
    with connected(url) as connection:
        ddl.downgrade(connection)
    assert (schema_of(url), version_of(url)) == ([], 0)
    by_create_tables(url)
    assert schema_of(url) == upgraded


def test_a_downgrade_keeps_the_rows_of_the_version_before(url):
    first(url)
    by_create_tables(url)
    with connected(url) as connection:
        ddl.downgrade(connection, to=1)
    assert version_of(url) == 1
    with connected(url) as connection:
        assert connection.execute(text("select count(*) from surehook_inbox_events")).scalar() == 2


def test_tables_that_lack_an_index_are_of_the_version_before_and_are_brought_up(url):
    by_create_tables(url)
    whole = schema_of(url)
    with connected(url) as connection:
        ddl.downgrade(connection, to=2)
    assert (version_of(url), schema_of(url) == whole) == (2, False)
    ran(url, ddl.script(url.partition(":")[0].partition("+")[0], version=2))
    assert (version_of(url), schema_of(url)) == (3, whole)


def test_on_older_tables_events_are_received_and_wait_and_one_line_says_what_to_do(url, caplog):
    caplog.set_level(logging.WARNING, "surehook.inbox")
    first(url)
    inbox = Inbox(url, [partner()], clock=Clock())
    inbox.on("partner")(lambda event, tx: 1 / 0)
    assert inbox.receive(call(*message("evt_3"), at=inbox.clock.now())).status == 200
    for _ in range(20):
        with pytest.raises(StoreError) as caught:
            inbox.work()
        inbox.trouble.met(caught.value)
    (line,) = caplog.records
    assert line.levelname == "ERROR"
    assert (
        "its tables are of version 1, and this surehook needs 3: `surehook inbox ddl --from 1`"
        in line.getMessage()
    )
    assert {one.attempts for one in inbox.events()} == {0}, "nobody's attempts are used up by that"
    by_create_tables(url)  # meanwhile, by another process
    inbox.work()
    assert {one.id: one.attempts for one in inbox.events()} == {"evt_1": 0, "evt_2": 1, "evt_3": 1}
    inbox.close()


def test_what_the_version_before_says_to_newer_tables_they_understand(url):
    """An application of version 1 writes columns by name into tables that all are as they were."""
    first(url)
    before = {name: rest for name, *rest in schema_of(url)}
    by_create_tables(url)
    after = {name: rest for name, *rest in schema_of(url)}
    for name, (columns, key, indexes) in before.items():
        assert after[name][:2] == [columns, key]
        assert set(indexes) <= set(after[name][2])


def test_processes_that_make_the_tables_at_the_same_moment_all_succeed(url):
    together = Barrier(6)

    def make(_: int) -> None:
        inbox = Inbox(url)
        together.wait()
        inbox.create_tables()
        inbox.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(make, range(6)))
    assert version_of(url) == versions.CURRENT


def test_an_asynchronous_inbox_upgrades_and_waits_as_well(ground_of, runner):
    for database in ("sqlite", "postgresql"):
        _, url = ground_of(database, "async")
        first(url)
        house = House("async", url, runner)
        with pytest.raises(StoreError, match="of version 1"):
            house.work()
        house.do(house.inbox.create_tables())
        house.on()
        house.sql("create table effects (event_id varchar(255) not null, word varchar(255))")
        house.work()
        assert house.effects() == ["evt_2"]
        house.close()


def test_every_table_came_with_a_version():
    came = [PREFIX + name for names in versions.CAME.values() for name in names]
    assert sorted(came) == sorted(metadata.tables)


@pytest.mark.parametrize("dialect", DATABASES)
def test_the_tables_of_the_first_version_are_printed_as_they_were(dialect):
    """So that what an old database has, and what a new one gets, cannot part."""
    printed = {one.strip() for one in (FIRST / f"{dialect}.sql").read_text().split(";\n") if one.strip()}
    later = ddl.index_statements(dialect, versions.indexes_since(1))
    assert printed == set(ddl.statements(dialect, versions.CAME[1])) - set(later)


def test_a_version_that_never_was_is_refused():
    with pytest.raises(SettingsError, match="no version 99"):
        ddl.script("sqlite", version=99)
    assert ddl.script("sqlite", version=versions.CURRENT) == ""


def test_the_commands_bring_up_the_tables_and_print_what_is_missing(tmp_path, monkeypatch, capsys):
    url = f"sqlite:///{tmp_path / 'inbox.db'}"
    first(url)
    (tmp_path / "older_inbox.py").write_text(
        f"from surehook.inbox import Inbox\ninbox = Inbox({url!r})\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "older_inbox", raising=False)
    assert run(["inbox", "ddl", "--dialect", "sqlite", "--from", "1"]) == 0
    printed = capsys.readouterr().out
    assert "CREATE TABLE surehook_inbox_tries" in printed and "surehook_inbox_runs" not in printed
    assert version_of(url) == 1
    assert run(["inbox", "upgrade", "older_inbox:inbox"]) == 0
    assert version_of(url) == versions.CURRENT
    assert run(["inbox", "ddl", "--from", str(versions.CURRENT)]) == 0
    said = capsys.readouterr()
    assert said.out == "" and "lack nothing" in said.err
    assert run(["inbox", "ddl", "--from", "7"]) != 0
    assert "there is no version 7" in capsys.readouterr().err


def test_the_page_has_every_version():
    rows = re.findall(r"^\| (\d+) \|", section("docs/inbox.md", "Tables and migrations"), re.MULTILINE)
    assert [int(one) for one in rows] == list(versions.CAME)
