"""`surehook doctor`, `backup` and `migrate`: what they find on this machine, and that looking changes nothing."""

from __future__ import annotations

import fcntl
import os
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from surehook.cli.doctor_checks import COUNTED_MAX
from tests.cli.conftest import Ran, Run
from tests.cli.fake_api import fake_api
from tests.servers import Postgres

NOBODY = 65_534


def states(ran: Ran) -> dict[str, str]:
    return {finding["what"]: finding["state"] for finding in ran.json}


@pytest.fixture
def free(surehook: Run) -> dict[str, str]:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return {"SUREHOOK_PORT": str(taken.getsockname()[1])}


def test_a_sound_machine_is_all_ok(surehook: Run, free: dict[str, str]) -> None:
    with fake_api(
        **{"GET /readyz": {"status": "ready"}, "GET /v1/policies": {"data": [], "next": None}}
    ) as api:
        ran = surehook("doctor", "--json", env=api.env | free)
    assert ran.code == 0
    assert states(ran) == dict.fromkeys(
        ("python", "sqlite", "settings", "clock", "disk", "ledger", "port", "server", "key"), "ok"
    )


def test_a_lane_that_nobody_serves_is_a_warning(surehook: Run, free: dict[str, str]) -> None:
    ready = {"status": "ready", "warning": "no process serves the lane retry"}
    with fake_api(**{"GET /readyz": ready, "GET /v1/policies": {"data": [], "next": None}}) as api:
        ran = surehook("doctor", "--json", env=api.env | free)
    assert states(ran)["lanes"] == "warning"


def test_no_server_is_wrong_unless_it_was_not_asked(surehook: Run, free: dict[str, str]) -> None:
    ran = surehook("doctor", "--json", env=free)
    assert (ran.code, states(ran)["server"]) == (7, "wrong")
    assert surehook("doctor", "--no-server", env=free).code == 0


def test_a_wrong_key_is_told_from_a_missing_server(surehook: Run, free: dict[str, str]) -> None:
    with fake_api(**{"GET /readyz": {"status": "ready"}}) as api:
        ran = surehook("doctor", "--json", env=free | {"SUREHOOK_URL": api.url})
    assert (states(ran)["server"], states(ran)["key"]) == ("ok", "wrong")
    assert "SUREHOOK_API_KEY" in ran.out


def test_a_taken_port_is_wrong(surehook: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = surehook("doctor", "--no-server", env={"SUREHOOK_PORT": str(taken.getsockname()[1])})
    assert ran.code == 7
    assert "Address already in use" in ran.out


def test_a_port_is_well_taken_by_the_server_that_answers_there(surehook: Run) -> None:
    """On PostgreSQL as well, where no file tells who serves the ledger."""
    with fake_api(
        **{"GET /readyz": {"status": "ready"}, "GET /v1/policies": {"data": [], "next": None}}
    ) as api:
        port = api.url.rpartition(":")[2]
        ran = surehook("doctor", "--json", env=api.env | {"SUREHOOK_PORT": port})
    assert (ran.code, states(ran)["port"], states(ran)["server"]) == (0, "ok", "ok")


@pytest.fixture
def nobody() -> Iterator[None]:
    """Rights are looked at as somebody who is not the administrator, for whom nothing is read-only."""
    if os.geteuid() != 0:
        yield
        return
    os.setreuid(NOBODY, 0)
    yield
    os.setreuid(0, 0)


@pytest.mark.parametrize("floor", ["1", "1000"])
def test_a_folder_that_cannot_be_written_is_wrong(
    surehook: Run, free: dict[str, str], floor: str, nobody: None
) -> None:
    with TemporaryDirectory() as folder:  # pytest's own are closed to everybody else
        env = free | {"SUREHOOK_DATABASE_URL": f"sqlite:///{folder}/x.db", "SUREHOOK_DISK_FLOOR_MB": floor}
        for mode, is_wrong in ((0o777, False), (0o555, True)):
            Path(folder).chmod(mode)
            ran = surehook("doctor", "--no-server", "--json", env=env)
            assert ("is not writable" in ran.out) is is_wrong
            assert not is_wrong or states(ran)["disk"] == "wrong"


@pytest.mark.slow
def test_a_role_with_too_few_rights_on_postgresql_is_wrong(
    surehook: Run, postgres: Postgres, database: str, free: dict[str, str]
) -> None:
    name = database.rpartition("/")[2]
    role = f"reader_{name}"[:60]
    postgres.ask(f'revoke create on schema public from public; create role "{role}" login', name)
    env = free | {"SUREHOOK_DATABASE_URL": database.replace("postgres@", f"{role}@")}
    try:
        bare = surehook("doctor", "--no-server", "--json", env=env)
        surehook("migrate", "up", env=free | {"SUREHOOK_DATABASE_URL": database})
        full = surehook("doctor", "--no-server", "--json", env=env)
    finally:
        postgres.ask(f'drop role "{role}"', name)
    for ran in (bare, full):
        assert (ran.code, states(ran)["ledger"]) == (7, "wrong")
        assert "may not make tables" in ran.out and "grant create, usage on schema" in ran.out
    assert "owner to" in full.out and "owner to" not in bare.out


def test_a_disk_below_its_floor_is_wrong(surehook: Run, free: dict[str, str]) -> None:
    ran = surehook("doctor", "--no-server", "--json", env=free | {"SUREHOOK_DISK_FLOOR_MB": "1048576"})
    assert states(ran)["disk"] == "wrong"


def test_a_disk_that_is_near_its_floor_is_a_warning(surehook: Run, free: dict[str, str]) -> None:
    found = os.statvfs(".")
    floor = max(1, (found.f_bavail * found.f_frsize >> 20) // 2)
    ran = surehook("doctor", "--no-server", "--json", env=free | {"SUREHOOK_DISK_FLOOR_MB": str(floor)})
    assert (ran.code, states(ran)["disk"]) == (0, "warning")


def test_a_missing_folder_is_wrong(surehook: Run, free: dict[str, str]) -> None:
    env = free | {"SUREHOOK_DATABASE_URL": "sqlite:////nowhere/at/all.db"}
    assert states(surehook("doctor", "--no-server", "--json", env=env))["disk"] == "wrong"


def test_a_file_that_is_no_ledger_is_wrong(surehook: Run, free: dict[str, str]) -> None:
    Path("surehook.db").write_text("shopping list")
    assert states(surehook("doctor", "--no-server", "--json", env=free))["ledger"] == "wrong"


def test_a_wrong_setting_is_the_finding(surehook: Run) -> None:
    ran = surehook("doctor", "--json", env={"SUREHOOK_PROT": "1"})
    assert (ran.code, states(ran)["settings"]) == (7, "wrong")
    assert "SUREHOOK_PORT" in ran.out


def test_a_served_ledger_names_the_process_that_has_it(surehook: Run, free: dict[str, str]) -> None:
    assert surehook("migrate", "up", "--json").json["revision"] is not None
    with open("surehook.db-lock", "r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        out = surehook("doctor", "--no-server", env=free).out
        refused = surehook("migrate", "up")
        with socket.create_server(("127.0.0.1", int(free["SUREHOOK_PORT"]))):
            serving = surehook("doctor", "--no-server", "--json", env=free)
    assert f"served by process {os.getpid()}" in out
    assert (serving.code, states(serving)["port"]) == (0, "ok"), "its own server has the port"
    assert refused.code == 2
    assert str(os.getpid()) in refused.err


def test_of_a_large_backlog_it_is_said_that_there_is_one(surehook: Run, free: dict[str, str]) -> None:
    """Counting ten million would keep who asks waiting for seconds."""
    surehook("migrate", "up")
    with closing(sqlite3.connect("surehook.db")) as connection, connection:
        connection.execute(
            "with recursive made (n) as (select 1 union all select n + 1 from made where n <= ?) insert into delivery "
            "(id, attempt, lane, due_at, endpoint, event, tenant, type, born_at) "
            "select randomblob(16), 1, 0, 0, x'00', x'00', 't', 'a.b', 0 from made",
            (COUNTED_MAX,),
        )
    assert f"more than {COUNTED_MAX:,} unfinished" in surehook("doctor", "--no-server", env=free).out


def test_looking_leaves_no_files_behind(surehook: Run, free: dict[str, str]) -> None:
    surehook("doctor", "--no-server", env=free)
    assert os.listdir() == []
    surehook("migrate", "up")
    before = sorted(os.listdir())
    surehook("doctor", "--no-server", env=free)
    assert sorted(os.listdir()) == before


def test_migrations_are_shown_and_applied(surehook: Run) -> None:
    before = surehook("migrate", "status", "--json")
    assert (before.code, before.json["revision"]) == (7, None)
    assert os.listdir() == []
    surehook("migrate", "up")
    after = surehook("migrate", "status", "--json")
    assert (after.code, after.json["revision"]) == (0, after.json["newest"])


def test_a_copy_is_made_once_and_never_over_another_file(surehook: Run) -> None:
    assert surehook("backup", "copy.db").code == 4
    surehook("migrate", "up")
    nowhere = surehook("backup", "nowhere/copy.db")
    assert nowhere.code == 1
    assert "there is no folder" in nowhere.err
    assert "make it first" in nowhere.err
    assert surehook("backup", "copy.db", "--json").json["bytes"] == Path("copy.db").stat().st_size
    again = surehook("backup", "copy.db")
    assert again.code == 5
    assert "is there already" in again.err


def test_it_looks_at_postgresql_and_what_was_named_beside_it(
    surehook: Run, database: str, free: dict[str, str]
) -> None:
    env = free | {
        "SUREHOOK_DATABASE_URL": database,
        "SUREHOOK_BROKER_URL": "amqp://me:hush@127.0.0.1:1/",
        "SUREHOOK_REDIS_URL": "redis://:hush@127.0.0.1:1/",
    }
    ran = surehook("doctor", "--no-server", "--json", env=env)
    found = states(ran)
    assert (found["ledger"], found["broker"], found["redis"]) == ("ok", "warning", "warning")
    assert "hush" not in ran.out


def test_a_ledger_of_another_version_is_a_warning(
    surehook: Run, postgres: Postgres, database: str, free: dict[str, str]
) -> None:
    env = free | {"SUREHOOK_DATABASE_URL": database}
    surehook("migrate", "up", env=env)
    postgres.ask("update alembic_version set version_num = '0001'", database.rpartition("/")[2])
    assert states(surehook("doctor", "--no-server", "--json", env=env))["ledger"] == "warning"


def test_a_database_that_is_not_there_is_named_with_what_to_do(
    surehook: Run, database: str, free: dict[str, str]
) -> None:
    env = free | {"SUREHOOK_DATABASE_URL": database + "_not"}
    ran = surehook("doctor", "--no-server", env=env)
    assert "has no database" in ran.out and "createdb" in ran.out
