"""The applications of docs/recipes.md, typed word by word, with `kill -9` on every side: what was committed arrives once."""

from __future__ import annotations

import contextlib
import re
import sqlite3
import sys
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from tests.docs.pages import PAGES, ROOT, examples
from tests.docs.terminal import Terminal, wait_until
from tests.servers.ports import reserve

PAGE = "docs/recipes.md"
TYPED = examples(PAGE)
PER_KILL = 5  # documents between two kills
PACE_S = 0.2  # between two documents: while the receiver is away, fewer deliveries fail than open a breaker
ARRIVE_S = 60  # after the last kill; a delivery to a receiver that was away is tried again after some seconds


class Street:
    """A folder with the terminals of a recipe, and what is in the databases of both applications."""

    def __init__(self, folder: Path, database: str | None) -> None:
        self.folder, self.database = folder, database
        self._api, self._receiver, self._app = reserve(), reserve(), reserve()
        self._terminals: dict[str, Terminal] = {}
        self.refused = 0
        (folder / ".venv").symlink_to(sys.prefix)
        self.write("receiver_app")

    def _here(self, text: str) -> str:
        """The page's words with the ports, and the database, of this test."""
        places = {"8080": self._api, "4000": self._receiver, "8000": self._app}
        for place, here in places.items():
            text = re.sub(rf"\b{place}\b", str(here), text)
        return text.replace("postgresql://localhost/shop", self.database or "")

    def write(self, *names: str) -> None:
        """Write files of the page under the name in their first line."""
        for name in names:
            place = self.folder / TYPED[name].partition("\n")[0].removeprefix("# ")
            place.parent.mkdir(exist_ok=True)
            place.write_text(self._here(TYPED[name]))

    def open(self, name: str, shows: str | None = None) -> None:
        self._terminals[name] = Terminal(self.folder, name, self._here(TYPED[name]), self._api)
        if shows is None:
            self._terminals[name].ends()
        else:
            self._terminals[name].shows(shows)

    def kill(self, name: str, shows: str) -> None:
        """kill -9, and open it again."""
        self._terminals[name].kill()
        self.open(name, shows)

    def close(self) -> None:
        for terminal in reversed(self._terminals.values()):
            terminal.close()

    def sign(self, document: str) -> None:
        """Ask the application to sign; what becomes of it, its database says."""
        address = f"http://127.0.0.1:{self._app}/documents/{document}/sign"
        try:
            urllib.request.urlopen(urllib.request.Request(address, method="POST"), timeout=10).close()
        except OSError:
            self.refused += 1

    def committed(self) -> list[str]:
        query = "select id from document"
        if self.database is not None:
            with psycopg.connect(self.database) as connection:
                return sorted(row[0] for row in connection.execute(query))
        with contextlib.closing(sqlite3.connect(self.folder / "shop.db", timeout=20)) as connection:
            return sorted(row[0] for row in connection.execute(query))

    def arrived(self) -> list[str]:
        with contextlib.closing(sqlite3.connect(self.folder / "receiver.db", timeout=20)) as connection:
            return sorted(row[0] for row in connection.execute("select document from signed"))

    def all_arrive(self) -> None:
        """Wait until as much has arrived as was committed, and compare."""
        committed = self.committed()
        wait_until(
            lambda: len(self.arrived()) >= len(committed),
            ARRIVE_S,
            lambda: f"missing: {sorted(set(committed) - set(self.arrived()))}",
        )
        assert self.arrived() == committed


@contextlib.contextmanager
def signing(sign: Callable[[str], None]) -> Iterator[None]:
    """Documents are signed one after another, whoever dies."""
    stop = threading.Event()

    def go() -> None:
        number = 0
        while not stop.wait(PACE_S):
            number += 1
            sign(f"doc_{number}")

    thread = threading.Thread(target=go)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def kill_each(street: Street, **shows: str) -> None:
    """Kill one after another, and let some documents be signed after each."""
    for name, ready in shows.items():
        wanted = len(street.committed()) + PER_KILL
        wait_until(lambda: len(street.committed()) >= wanted, ARRIVE_S, lambda: "nothing is signed")  # noqa: B023
        street.kill(name, ready)


@pytest.fixture
def street(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Street]:
    needs_database = getattr(request, "param", None)
    made = Street(tmp_path, request.getfixturevalue("database") if needs_database else None)
    yield made
    made.close()


UVICORN, SERVER, RELAY = "Uvicorn running", "surehook listens on", "publishing to"


@pytest.mark.slow
@pytest.mark.parametrize("street", [True], indirect=True)
def test_fastapi_and_a_server_in_one_database(street: Street) -> None:
    street.write("fastapi_app")
    street.open("fastapi_server", SERVER)
    street.open("receiver", UVICORN)
    street.open("fastapi", UVICORN)
    with signing(street.sign):
        kill_each(street, fastapi=UVICORN, receiver=UVICORN, fastapi_server=SERVER)
    street.all_arrive()


@pytest.mark.slow
def test_django(street: Street) -> None:
    street.write("django_settings", "django_models", "django_urls")
    (street.folder / "shop" / "__init__.py").touch()
    street.open("server", SERVER)
    street.open("receiver", UVICORN)
    street.open("django", "Starting development server")
    street.open("django_relay", RELAY)
    with signing(street.sign):
        kill_each(
            street, django="Starting development server", receiver=UVICORN, django_relay=RELAY, server=SERVER
        )
    street.all_arrive()


@pytest.mark.slow
@pytest.mark.parametrize("street", [True], indirect=True)
def test_flask(street: Street) -> None:
    street.write("flask_app")
    street.open("server", SERVER)
    street.open("receiver", UVICORN)
    street.open("flask", "Running on")
    street.open("flask_relay", RELAY)
    with signing(street.sign):
        kill_each(street, flask="Running on", receiver=UVICORN, flask_relay=RELAY, server=SERVER)
    street.all_arrive()


@pytest.mark.slow
def test_a_script(street: Street) -> None:
    street.write("script_app")
    street.open("server", SERVER)
    street.open("receiver", UVICORN)
    street.open("script")
    street.all_arrive()
    assert street.arrived() == ["doc_42", "doc_43"]


@pytest.mark.slow
@pytest.mark.parametrize("street", [True], indirect=True)
def test_background_jobs(street: Street) -> None:
    street.write("worker_app")
    street.open("server", SERVER)
    street.open("receiver", UVICORN)
    street.open("worker", "the tables are there now")
    street.open("worker_relay", RELAY)
    with psycopg.connect(str(street.database), autocommit=True) as connection:

        def ask(document: str) -> None:
            connection.execute("insert into job (document) values (%s)", (document,))

        def answers(query: str, wanted: object) -> None:
            wait_until(lambda: connection.execute(query).fetchone() == (wanted,), ARRIVE_S, lambda: query)

        answers("select to_regclass('job') is null", False)
        with signing(ask):
            kill_each(street, worker="the tables were there already", receiver=UVICORN, worker_relay=RELAY)
        answers("select count(*) from job where not done", 0)
        asked = connection.execute("select document from job").fetchall()
    assert street.committed() == sorted(document for (document,) in asked)
    street.all_arrive()


def test_each_recipe_says_what_to_install() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pinned = {
        re.split(r"[=;\[]", line)[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()
    }
    installs = re.findall(r"^pip install (.*)$", PAGES[PAGE], re.MULTILINE)
    assert len(installs) == 6
    for words in installs:
        for word in words.replace("'", "").split():
            name, _, extras = word.rstrip("]").partition("[")
            if name == "surehook":
                assert set(filter(None, extras.split(","))) <= project["optional-dependencies"].keys()
            else:
                assert name in pinned, f"{name} is not what the tests have"
