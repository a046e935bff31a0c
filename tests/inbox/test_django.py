"""The inbox in Django: its migrations, its transactions, its view. What every store promises is in test_inbox.py."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import DatabaseError, IntegrityError, connection, connections, transaction
from django.test import Client, TestCase, TransactionTestCase, override_settings
from django.urls import path
from psycopg.sql import SQL

from surehook.core.errors import SettingsError
from surehook.inbox import Backoff, Refuse, sources
from surehook.inbox.django.settings import given
from surehook.inbox.sql import ddl
from surehook.verify import sign
from tests import servers
from tests.e2e.calling import until
from tests.inbox import djangos
from tests.inbox.djangos import Inbox
from tests.inbox.house import NOW, SECRET, Clock, call, known_as_quick, message, partner
from tests.inbox.shop.models import Contract

TABLES = "surehook_inbox_%"


@pytest.fixture(params=["sqlite", "postgresql", pytest.param("mariadb", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    with ExitStack() as stack:
        if request.param == "sqlite":
            yield f"sqlite:///{tmp_path / 'shop.db'}"
        elif request.param == "postgresql":
            yield stack.enter_context(servers.postgres().database())
        else:
            yield stack.enter_context(servers.mariadb().database())


@pytest.fixture
def inboxes(url: str) -> Iterator[Callable[..., Inbox]]:
    """Makes inboxes on the migrated database."""
    made: list[Inbox] = []

    def make(given: Any = None, **options: Any) -> Inbox:
        made.append(Inbox(given or [partner()], clock=Clock(), **options))
        return made[-1]

    with djangos.at(url):
        yield make
        for inbox in made:
            inbox.close()


@pytest.fixture
def inbox(inboxes: Callable[..., Inbox]) -> Inbox:
    return inboxes()


def post(inbox: Inbox, event_id: str, body: bytes, *, source: str = "partner", **choices: Any) -> Any:
    """The answer of the view to a signed request, through Django's own handler and middlewares."""
    headers = sign(SECRET, event_id, body, timestamp=NOW // 1000)
    with override_settings(ROOT_URLCONF=(path("hooks/<str:source>", inbox.view),)):
        client = Client(enforce_csrf_checks=True, headers=headers, raise_request_exception=False)
        return client.post(f"/hooks/{source}", body, content_type="application/json", **choices)


def signed(number: str, event_id: str = "evt_1") -> tuple[str, bytes]:
    return message(event_id, number=number)


def states(inbox: Inbox) -> dict[str, str]:
    return {one.id: one.state for one in inbox.events()}


def numbers() -> list[str]:
    return sorted(Contract.objects.values_list("number", flat=True))


def creating(inbox: Inbox, then: Callable[[Any], Any] | None = None) -> None:
    """A handler that makes a contract, and then does something else."""

    @inbox.on("partner", version="1")
    def create(event: Any, tx: Any) -> Any:
        Contract.objects.create(number=event.body["number"])
        return then(event) if then else None


# -- migrations -------------------------------------------------------------------------------------------------


def schema() -> list[Any]:
    """Everything that the database knows of the inbox's tables."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "select type, name, sql from sqlite_master where tbl_name like %s order by 1, 2", [TABLES]
            )
            return [(type, name, " ".join((sql or "").split())) for type, name, sql in cursor.fetchall()]
        found: list[Any] = []
        if connection.vendor == "mysql":
            for table in connection.introspection.table_names(cursor):
                if table.startswith(TABLES[:-1]):
                    cursor.execute(f"show create table {table}")
                    found += cursor.fetchone()[1].splitlines()
            return found
        for query in (
            "select table_name, column_name, ordinal_position, data_type, character_maximum_length, is_nullable,"
            " column_default from information_schema.columns where table_name like %s order by 1, 3",
            "select indexname, indexdef from pg_indexes where tablename like %s order by 1",
            "select conname, pg_get_constraintdef(oid) from pg_constraint where conrelid::regclass::text like %s order by 1",
        ):
            cursor.execute(query, [TABLES])
            found += cursor.fetchall()
        return found


def test_the_migration_makes_exactly_the_tables_that_are_printed(url):
    with djangos.at(url):
        migrated = schema()
        call_command("migrate", "surehook_inbox", "zero", verbosity=0)
        assert schema() == []
        with connection.cursor() as cursor:
            for statement in ddl.script(connection.vendor).split(";\n")[:-1]:
                cursor.execute(statement)
        assert migrated == schema()
    assert len(migrated) > 10


def test_the_migrations_go_back_and_forth_and_django_sees_nothing_left_to_migrate(url):
    with djangos.at(url, migrated=False):
        with pytest.raises(SystemExit):
            call_command("migrate", check_unapplied=True, verbosity=0)
        for _ in range(2):
            call_command("migrate", verbosity=0)
            call_command("migrate", check_unapplied=True, verbosity=0)
            call_command("makemigrations", check_changes=True, dry_run=True, verbosity=0)
            call_command("migrate", "surehook_inbox", "zero", verbosity=0)
            assert schema() == []


def test_tables_that_other_hands_have_made_are_kept_with_what_is_in_them(url):
    with djangos.at(url):
        inbox = Inbox([partner()], clock=Clock())
        inbox.receive(call(*message("evt_1"), at=NOW))
        before = schema()
        call_command("migrate", "surehook_inbox", "zero", fake=True, verbosity=0)
        call_command("migrate", verbosity=0)
        assert schema() == before
        assert states(inbox) == {"evt_1": "accepted"}
        inbox.close()


def test_the_migrations_print_their_statements(url, capsys):
    with djangos.at(url):
        call_command("sqlmigrate", "surehook_inbox", "0001")
    assert ddl.statements(url.partition(":")[0])[0] in capsys.readouterr().out


class Elsewhere:
    """A router: the inbox lies in a database of its own, the shop in the default one."""

    def db_for_read(self, model: Any, **hints: Any) -> str | None:
        return "hooks" if model._meta.app_label == "surehook_inbox" else None

    db_for_write = db_for_read

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return (db == "hooks") == (app_label == "surehook_inbox")


def test_routers_say_where_the_inbox_lies(tmp_path):
    with override_settings(DATABASE_ROUTERS=[Elsewhere()]):
        with (
            djangos.at(f"sqlite:///{tmp_path / 'shop.db'}"),
            djangos.at(f"sqlite:///{tmp_path / 'hooks.db'}", alias="hooks"),
        ):
            inbox = Inbox([partner()], clock=Clock())
            assert inbox.receive(call(*message("evt_1"), at=NOW)).status == 200
            assert schema() == []
            assert "surehook_inbox_runs" in connections["hooks"].introspection.table_names()
            assert "shop_contract" not in connections["hooks"].introspection.table_names()
            assert Inbox([partner()], using="default").store.alias == "default"
            inbox.close()


# -- the view ---------------------------------------------------------------------------------------------------


def test_a_request_is_received_and_objects_are_saved_in_the_commit_that_marks_it(inbox):
    creating(inbox)
    assert post(inbox, *signed("c1")).status_code == 200
    assert post(inbox, *signed("c1")).status_code == 200  # a repeat
    assert inbox.work() == 1
    assert (numbers(), states(inbox)) == (["c1"], {"evt_1": "finalized"})


def test_a_refusal_is_problem_json_through_the_view(inbox):
    event_id, body = signed("c1")
    headers = sign(SECRET, event_id, body + b" ", timestamp=NOW // 1000)
    refused = post(inbox, event_id, body, headers=headers)
    assert (refused.status_code, refused["content-type"]) == (401, "application/problem+json")
    assert refused.json()["code"] == "bad_signature"
    assert post(inbox, *signed("c1"), source="other").json()["code"] == "unknown_source"
    with override_settings(ROOT_URLCONF=(path("hooks/<str:source>", inbox.view),)):
        answer = Client().get("/hooks/partner")
    assert (answer.status_code, answer["allow"]) == (405, "POST")
    assert inbox.counts() == {}


def test_the_source_bounds_the_body_and_not_the_uploads_of_django(inboxes):
    inbox = inboxes([partner(body_bytes=5_000)])
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1_000):
        assert post(inbox, *message("evt_1", text="x" * 4_000)).status_code == 200
        assert post(inbox, *message("evt_2", text="x" * 6_000)).json()["code"] == "too_large"
    assert states(inbox) == {"evt_1": "accepted"}


class ParsesForms:
    """A middleware that looks into forms, as many do for tokens and logs."""

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response

    def __call__(self, request: Any) -> Any:
        request.POST  # noqa: B018 (reading it parses the body)
        return self.get_response(request)


def test_a_body_that_a_middleware_has_parsed_is_a_retryable_problem_of_the_receiver(inbox, caplog):
    with override_settings(MIDDLEWARE=[f"{__name__}.ParsesForms"]):
        event_id, body = signed("c1")
        assert post(inbox, event_id, body).status_code == 200  # JSON is left as it is
        with override_settings(ROOT_URLCONF=(path("hooks/<str:source>", inbox.view),)):
            answer = Client().post("/hooks/partner", {"json": "{}"})  # multipart, as Dropbox Sign sends
    assert (answer.status_code, answer.json()["code"], answer.json()["retryable"]) == (
        500,
        "not_set_up",
        True,
    )
    assert "parsed before the inbox" in caplog.text


def test_atomic_requests_do_not_hold_back_the_commit(url):
    with djangos.at(url, ATOMIC_REQUESTS=True):
        inbox = Inbox([partner()], clock=Clock())
        assert post(inbox, *signed("c1")).status_code == 200
        assert states(inbox) == {"evt_1": "accepted"}
        inbox.close()


def test_nothing_is_answered_2xx_inside_a_transaction_that_others_commit(inbox):
    with transaction.atomic():
        refused = inbox.receive(call(*message("evt_1"), at=NOW))
    assert (refused.status, json.loads(refused.body)["retryable"]) == (503, True)
    assert states(inbox) == {}


# -- one transaction --------------------------------------------------------------------------------------------


class Crash(BaseException):
    """The process is gone at this place."""


def test_what_a_failing_handler_saved_is_undone_and_its_neighbours_stand(inbox):
    creating(inbox, lambda event: 1 / event.body["divisor"])
    for event_id, divisor in (("evt_1", 1), ("evt_2", 0), ("evt_3", 1)):
        inbox.receive(call(*message(event_id, number=event_id, divisor=divisor), at=NOW))
    known_as_quick(inbox)
    assert inbox.work() == 1
    assert numbers() == ["evt_1", "evt_3"]
    assert states(inbox) == {"evt_1": "finalized", "evt_2": "accepted", "evt_3": "finalized"}


def test_a_crash_before_the_commit_leaves_neither_objects_nor_mark_and_the_next_worker_does_it_once(inbox):
    creating(inbox)
    inbox.receive(call(*signed("c1"), at=NOW))
    token = b"t" * 16
    claimed = inbox.store.run(inbox.transactions.claim_work(token))

    def processed_and_gone(transaction: Any) -> None:
        inbox.transactions.process_work(claimed.runs, token)(transaction)
        assert numbers() == ["c1"]
        raise Crash

    with pytest.raises(Crash):
        inbox.store.run(processed_and_gone)
    assert numbers() == []
    inbox.clock.passes(61)  # type: ignore[attr-defined]
    assert inbox.work() == 1
    assert (numbers(), states(inbox)) == (["c1"], {"evt_1": "finalized"})
    assert inbox.work() == 0


def test_an_error_that_a_handler_swallowed_fails_it_since_django_undoes_its_work(inbox):
    @inbox.on("partner")
    def twice(event: Any, tx: Any) -> None:
        Contract.objects.create(number=event.id)
        with suppress(IntegrityError):
            Contract.objects.create(number=event.id)

    inbox.receive(call(*message("evt_1"), at=NOW))
    inbox.work()
    assert (numbers(), states(inbox)) == ([], {"evt_1": "accepted"})
    assert "transaction.atomic() round" in inbox.events()[0].error  # type: ignore[operator]


def test_a_handler_may_try_within_a_savepoint_of_its_own(inbox):
    @inbox.on("partner")
    def twice(event: Any, tx: Any) -> None:
        Contract.objects.create(number=event.id)
        with suppress(IntegrityError), transaction.atomic(using=tx.alias):
            Contract.objects.create(number=event.id)

    inbox.receive(call(*message("evt_1"), at=NOW))
    inbox.work()
    assert (numbers(), states(inbox)) == (["evt_1"], {"evt_1": "finalized"})


@pytest.mark.parametrize("raises", [False, True])
@pytest.mark.parametrize("by", ["the driver", "a statement"])
def test_a_handler_that_commits_past_django_is_dead_at_once_and_its_work_stands_once(inbox, by, raises):
    def committing(event: Any) -> None:
        if by == "the driver":
            connection.connection.commit()
        else:
            connection.cursor().execute("/* by hand */ COMMIT")
        if raises:
            raise ValueError("after it")

    creating(inbox, committing)
    inbox.receive(call(*signed("c1"), at=NOW))
    for _ in range(3):
        inbox.work()
        inbox.clock.passes(3600)  # type: ignore[attr-defined]
    assert numbers() == ["c1"], "once, and not once for each attempt"
    ended = inbox.events()[0]
    assert (ended.state, ended.code, ended.attempts) == ("dead", "handler_commits", 1)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_one_whose_transaction_was_undone_by_an_error_is_tried_again(inbox):
    """As SQLite does it where the disk is full, say: an error, and there is no transaction any more."""

    def undone(event: Any) -> None:
        if event.attempt == 1:
            connection.connection.rollback()
            with suppress(DatabaseError):
                connection.cursor().execute("select * from nowhere")

    creating(inbox, undone)
    inbox.receive(call(*signed("c1"), at=NOW))
    for _ in range(2):
        inbox.work()
        inbox.clock.passes(3600)  # type: ignore[attr-defined]
    assert (numbers(), states(inbox)) == (["c1"], {"evt_1": "finalized"})


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("statement", ["COMMIT", SQL("COMMIT")], ids=["text", "composed"])
def test_a_statement_that_would_end_djangos_transaction_is_not_said(inbox, statement):
    creating(inbox, lambda event: connection.cursor().execute(statement))
    inbox.receive(call(*signed("c1"), at=NOW))
    inbox.work()
    (event,) = inbox.events()
    assert (numbers(), event.state, event.code) == ([], "accepted", "commit_failed")


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_on_sqlite_a_transaction_is_a_writers_from_its_first_statement(inbox, url):
    def another_writer() -> bool:
        with closing(
            sqlite3.connect(url.removeprefix("sqlite:///"), timeout=0, isolation_level=None)
        ) as other:
            try:
                other.execute("begin immediate")
            except sqlite3.OperationalError:
                return False
            return True

    def work(transaction: Any) -> tuple[bool, bool]:
        before = another_writer()
        transaction.counts()
        return before, another_writer()

    assert inbox.store.run(work) == (True, False)


def test_what_is_to_happen_on_commit_happens_after_the_mark_stands_and_not_for_what_was_refused(inbox):
    told: list[Any] = []

    def later(event: Any) -> None:
        transaction.on_commit(lambda: told.append((event.id, states(inbox)[event.id])))
        if event.body["number"] == "bad":
            raise Refuse("bad")

    creating(inbox, later)
    inbox.receive(call(*signed("good"), at=NOW))
    inbox.receive(call(*signed("bad", "evt_2"), at=NOW))
    inbox.work()
    assert told == [("evt_1", "finalized")]


def test_what_fails_after_the_commit_is_logged_and_stops_nobody(inbox, caplog):
    told: list[str] = []

    def later(event: Any) -> None:
        transaction.on_commit(lambda: told.append(event.id) if event.id != "evt_1" else 1 / 0)

    creating(inbox, later)
    for n in range(3):
        inbox.receive(call(*signed(str(n), f"evt_{n}"), at=NOW))
    known_as_quick(inbox)
    assert inbox.work() == 1
    assert (told, set(states(inbox).values())) == (["evt_0", "evt_2"], {"finalized"})
    assert "on_commit" in caplog.text


def test_an_event_is_finalized_with_the_work_that_calls_for_it_or_not_at_all(inbox):
    inbox.on("partner", final=False, version="1")(lambda event, tx: None)
    inbox.receive(call(*signed("c1"), at=NOW))
    inbox.work()
    ref = inbox.events()[0].ref
    with pytest.raises(Crash):  # noqa: PT012 (the whole block is the point)
        with transaction.atomic():
            assert inbox.finalize(ref)
            raise Crash
    assert states(inbox) == {"evt_1": "processed"}
    with transaction.atomic():
        assert inbox.finalize(ref)
    assert states(inbox) == {"evt_1": "finalized"}


def leaves_open(event: Any) -> None:
    """What an ExitStack that nobody closes does."""
    if event.id == "evt_1":
        transaction.atomic().__enter__()


def three_at_once(inbox: Inbox) -> None:
    for n in range(3):
        inbox.receive(call(*signed(f"c{n}", f"evt_{n}"), at=NOW))
    known_as_quick(inbox)
    inbox.work()


@pytest.mark.parametrize("raises", [False, True])
def test_a_handler_that_leaves_a_block_open_has_failed_and_its_neighbours_stand(inbox, raises):
    def leaves(event: Any) -> None:
        leaves_open(event)
        if raises and event.id == "evt_1":
            raise ValueError("its own")

    creating(inbox, leaves)
    three_at_once(inbox)
    assert not connection.in_atomic_block
    assert (numbers(), states(inbox)) == (
        ["c0", "c2"],
        {"evt_0": "finalized", "evt_1": "accepted", "evt_2": "finalized"},
    )
    (failed,) = inbox.events(id="evt_1")
    assert (failed.code, failed.attempts) == ("handler_failed", 1)
    assert ("its own" if raises else "a block of transaction.atomic() was left open") in (failed.error or "")


@pytest.mark.parametrize("place", ["on_commit", "a hook"])
def test_a_block_left_open_where_a_worker_is_in_no_transaction_does_not_stop_it(inboxes, caplog, place):
    inbox = inboxes(backoff=Backoff(attempts=1))

    def leaves(event: Any) -> None:
        if place == "on_commit":
            transaction.on_commit(lambda: leaves_open(event))
        elif event.id == "evt_1":
            raise ValueError("for the hook")

    inbox.on_dead(lambda failure: transaction.atomic().__enter__())
    creating(inbox, leaves)
    inbox.start(workers=1)
    try:
        for n in (1, 2):
            inbox.receive(call(*signed(f"c{n}", f"evt_{n}"), at=NOW))
            until(lambda: states(inbox)[f"evt_{n}"] != "accepted", "the worker has stopped")  # noqa: B023 (called here)
    finally:
        inbox.stop()
    assert states(inbox) == {"evt_1": "finalized" if place == "on_commit" else "dead", "evt_2": "finalized"}
    assert "was left open" in caplog.text


def test_a_handler_that_ends_a_block_around_it_spoils_nothing_for_its_neighbours(inbox):
    def ends(event: Any) -> None:
        if event.id == "evt_1":
            transaction.atomic().__exit__(None, None, None)

    creating(inbox, ends)
    three_at_once(inbox)
    assert (numbers(), states(inbox)) == (
        ["c0", "c2"],
        {"evt_0": "finalized", "evt_1": "accepted", "evt_2": "finalized"},
    )
    (failed,) = inbox.events(id="evt_1")
    assert (failed.code, failed.attempts) == ("commit_failed", 1)
    assert "a block of transaction.atomic() that it had not begun" in (failed.error or "")


def test_a_handler_that_ends_all_blocks_around_it_has_committed(inbox):
    def ends(event: Any) -> None:
        for _ in range(2):
            transaction.atomic().__exit__(None, None, None)

    creating(inbox, ends)
    inbox.receive(call(*signed("c1"), at=NOW))
    inbox.work()
    (ended,) = inbox.events()
    assert (numbers(), ended.state, ended.code) == (["c1"], "dead", "handler_commits")


def test_in_a_transaction_of_the_application_a_block_left_open_fails_its_event_alone(inbox):
    creating(inbox, leaves_open)
    for n in (1, 2):
        inbox.receive(call(*signed(f"c{n}", f"evt_{n}"), at=NOW))
    with transaction.atomic():
        Contract.objects.create(number="own")
        inbox.work()
        assert len(connection.atomic_blocks) == 1
    assert numbers() == ["c2", "own"]
    assert states(inbox) == {"evt_1": "accepted", "evt_2": "finalized"}


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_database_that_is_away_is_503_and_its_connection_is_made_anew(url):
    with djangos.at(url, CONN_MAX_AGE=None):
        inbox = Inbox([partner()], clock=Clock())
        assert inbox.receive(call(*message("evt_1"), at=NOW)).status == 200
        with connection.cursor() as cursor:
            cursor.execute("select pg_backend_pid()")
            (backend,) = cursor.fetchone()
        servers.postgres().ask(f"select pg_terminate_backend({backend}, 10000)")
        assert inbox.receive(call(*message("evt_2"), at=NOW)).status == 503
        assert inbox.receive(call(*message("evt_2"), at=NOW)).status == 200
        inbox.close()


# -- around it --------------------------------------------------------------------------------------------------


def backends() -> int:
    """Of this database on PostgreSQL, our own included."""
    with connection.cursor() as cursor:
        cursor.execute("select count(*) from pg_stat_activity where datname = current_database()")
        (count,) = cursor.fetchone()
    return int(count)


def test_workers_in_threads_process_and_leave_no_connection_behind(inbox, url):
    committed = threading.Semaphore(0)
    creating(inbox, lambda event: transaction.on_commit(committed.release))
    inbox.start(workers=2)
    for n in range(20):
        inbox.receive(call(*message(f"evt_{n}", number=str(n)), at=NOW))
    assert all(committed.acquire(timeout=20) for _ in range(20))
    inbox.stop()
    assert (len(numbers()), inbox.counts()) == (20, {"partner": {"finalized": 20}})
    if url.startswith("postgresql"):
        until(
            lambda: backends() == 1, "a connection of a worker is left"
        )  # a backend ends a moment after its client


def test_a_test_case_of_django_receives_and_processes_and_takes_everything_back(inbox):
    class Case(TestCase):
        def test_it(self) -> None:
            creating(inbox)
            assert post(inbox, *signed("c1")).status_code == 200
            inbox.work()
            assert numbers() == ["c1"]

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])
    assert (numbers(), states(inbox)) == ([], {})


def test_a_transaction_test_case_of_django_empties_the_tables(inbox):
    class Case(TransactionTestCase):
        def test_it(self) -> None:
            inbox.receive(call(*message("evt_1"), at=NOW))
            assert states(inbox) == {"evt_1": "accepted"}

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(result)
    assert (result.testsRun, result.errors, result.failures) == (1, [], [])
    assert states(inbox) == {}


def test_the_view_is_asked_under_asgi_as_well(inbox):
    event_id, body = signed("c1")
    headers = sign(SECRET, event_id, body, timestamp=NOW // 1000)

    async def go() -> list[int]:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(get_asgi_application()), base_url="http://testserver"
        ) as client:
            posts = [client.post("/hooks/partner", content=body, headers=headers) for _ in range(5)]
            return [one.status_code for one in await asyncio.gather(*posts)]

    with override_settings(ROOT_URLCONF=(path("hooks/<str:source>", inbox.view),)):
        assert asyncio.run(go()) == [200] * 5
    assert states(inbox) == {"evt_1": "accepted"}


def test_a_coroutine_is_refused_as_a_handler(inbox):
    async def waiting(event: Any, tx: Any) -> None: ...

    with pytest.raises(SettingsError):
        inbox.on("partner")(waiting)


def test_nobody_else_needs_django():
    code = "import sys, surehook; from surehook.inbox import AsyncInbox, Inbox; assert 'django' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_models_show_the_rows(inbox):
    from surehook.inbox.django import models

    inbox.receive(call(*message("evt_1"), at=NOW))
    assert models.Events.objects.get(source="partner").event_id == "evt_1"
    assert models.Runs.objects.filter(state="accepted").count() == 1
    assert models.Documents.objects.count() == 0


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"source": []}, "source'"),
        ({"sources": ["yousign"]}, "what surehook.inbox.sources makes"),
        ([], "is a dict"),
    ],
)
def test_a_wrong_setting_is_told_at_the_start(values, word):
    with override_settings(SUREHOOK_INBOX=values), pytest.raises(ImproperlyConfigured, match=word):
        given()


def test_the_settings_describe_an_inbox():
    with override_settings(
        SUREHOOK_INBOX={"sources": [sources.named("yousign", secret="s" * 20)], "using": "default"}
    ):
        assert set(Inbox.of_settings().receiver.sources) == {"yousign"}
