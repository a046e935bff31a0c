"""Kills an application, its relay and the server at random moments, and then compares what was committed with what arrived.

The application writes a row of its own and an event with the next number of one of its subjects in each transaction, and takes
some transactions back. At the end every event whose row is there is at the server, none whose row is not, and those of a subject
have all numbers from 1 on and were accepted in their order.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import IO, Any

import msgspec
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from lab.bench import processes
from lab.bench.server import KEY, Launch, Server
from surehook.client import Client
from surehook.core.outbox_tables import create
from surehook.outbox import Outbox

TENANT = "acme"
SUBJECTS = 5
DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "mariadb": "mariadb+pymysql"}
DIALECTS: Any = {"sqlite": "sqlite", "postgresql": "postgresql", "mariadb": "mysql"}
PAUSE_S = (0.05, 0.4)  # between two kills
EMPTY_S = 60.0  # for what is left once nobody is killed any more
AWAY_S = 60.0  # of the server, once in a campaign that asks for it


class OutboxKills(msgspec.Struct, frozen=True):
    """What came of a campaign. `lost`, `made_up`, `disordered` and `gaps` are to be 0."""

    database: str
    kills: int
    committed: int
    arrived: int
    lost: int
    made_up: int
    disordered: int
    gaps: int
    refused: int

    @property
    def held(self) -> bool:
        return not (self.lost or self.made_up or self.disordered or self.gaps or self.refused)


def engine_of(url: str) -> Engine:
    scheme, _, rest = url.partition("://")
    return create_engine(f"{DRIVERS[scheme]}://{rest}", pool_pre_ping=True)


def write(url: str, seed: int) -> None:
    """The application: one transaction after another until it is killed, or stopped by SIGTERM."""
    chance, outbox, engine = random.Random(seed), Outbox(tenant=TENANT), engine_of(url)
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.append(number))
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    while not stopped:
        with contextlib.suppress(SQLAlchemyError), engine.begin() as tx:
            one(tx, outbox, f"doc_{chance.randrange(SUBJECTS)}", is_kept=chance.random() < 0.8)


def one(tx: Connection, outbox: Outbox, subject: str, *, is_kept: bool) -> None:
    id = outbox.put(tx, "document.signed", {"subject": subject}, subject=subject, numbered=True)
    tx.execute(text("INSERT INTO document (name) VALUES (:id)"), {"id": id})
    if not is_kept:
        tx.rollback()


class Household:
    """The three that are killed."""

    def __init__(self, folder: pathlib.Path, url: str, seed: int) -> None:
        self._url, self._seed, self._folder = url, seed, folder
        self.server = Server(Launch(folder=folder))
        self._chance = random.Random(seed)
        self._log = (folder / "others.log").open("ab")
        self.server.start()
        self.server.wait_ready()
        self.app, self.relay = self._app(), self._relay()

    def _app(self) -> subprocess.Popen[bytes]:
        self._seed += 1
        command = [sys.executable, "-m", "lab.bench.outbox_kills", "--write", self._url, str(self._seed)]
        return self._spawn(command, said=subprocess.PIPE)

    def _relay(self) -> subprocess.Popen[bytes]:
        surehook = str(pathlib.Path(sys.executable).with_name("surehook"))
        where = ["--server", f"http://127.0.0.1:{self.server.port}", "--api-key", KEY]
        return self._spawn([surehook, "outbox", "run", "--database", self._url, *where])

    def _spawn(self, command: list[str], said: int | IO[bytes] | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            env=processes.plain_environment(),
            stdin=subprocess.DEVNULL,
            stdout=self._log if said is None else said,
            stderr=self._log,
        )

    def kill(self, whom: str) -> None:
        """kill -9, and start it again. An application has begun to write by then: on a busy machine none would come to it."""
        if whom == "server":
            self.server.kill()
            self.server.start()
            return
        process: subprocess.Popen[bytes] = getattr(self, whom)
        if process.stdout is not None:
            process.stdout.readline()
            time.sleep(self._chance.uniform(*PAUSE_S))
            process.stdout.close()
        process.kill()
        process.wait()
        if whom == "app":
            self.app = self._app()
        else:
            self.relay = self._relay()

    def stop_app(self) -> None:
        self.app.terminate()
        self.app.wait()
        assert self.app.stdout is not None
        self.app.stdout.close()

    def close(self) -> None:
        for process in (self.app, self.relay):
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self.server.stop()
        self._log.close()


def campaign(
    url: str,
    *,
    kills: int,
    seed: int,
    folder: pathlib.Path,
    away: bool = False,
    tell: Callable[[str], object] = sys.stderr.write,
) -> OutboxKills:
    """Kill so many times, wait until the outbox is empty, and compare."""
    chance, name, engine = random.Random(seed), url.partition("://")[0], engine_of(url)
    with engine.begin() as connection:
        for statement in (*create(DIALECTS[name]), "CREATE TABLE document (name varchar(50))"):
            connection.exec_driver_sql(statement)
    house = Household(folder, url, seed * 1_000)
    client = Client(f"http://127.0.0.1:{house.server.port}", KEY, patience_s=60)
    try:
        client.call("POST", "/v1/tenants", json={"id": TENANT, "name": TENANT})
        for number in range(kills):
            time.sleep(chance.uniform(*PAUSE_S))
            house.kill(chance.choice(("app", "app", "relay", "relay", "server")))
            if number % 100 == 99:
                tell(f"{name}: {number + 1} kills\n")
        if away:
            house.server.kill()
            time.sleep(AWAY_S)
            house.server.start()
        house.server.wait_ready()
        house.stop_app()
        _until_empty(engine)
        events = list(client.pages("/v1/events", {"tenant": TENANT}))
    finally:
        client.close()
        house.close()
    with engine.begin() as connection:
        rows = {id for (id,) in connection.execute(text("SELECT name FROM document"))}
        refused = connection.execute(text("SELECT count(*) FROM surehook_outbox_refused")).scalar_one()
    engine.dispose()
    arrived = {event["id"] for event in events}
    subjects: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for event in events:
        subjects[event["subject"]].append((event["sequence"], event["accepted_at"]))
    ordered = [sorted(each) for each in subjects.values()]
    return OutboxKills(
        database=name, kills=kills, committed=len(rows), arrived=len(events), lost=len(rows - arrived),
        made_up=len(arrived - rows) + len(events) - len(arrived),
        disordered=sum(1 for each in ordered for a, b in itertools.pairwise(each) if a[1] > b[1]),
        gaps=sum(1 for each in ordered if [number for number, _ in each] != list(range(1, len(each) + 1))),
        refused=refused,
    )  # fmt: skip


def _until_empty(engine: Engine) -> None:
    until = time.monotonic() + EMPTY_S
    while time.monotonic() < until:
        with engine.begin() as connection:
            if connection.execute(text("SELECT count(*) FROM surehook_outbox")).scalar_one() == 0:
                return
        time.sleep(0.05)


@contextlib.contextmanager
def database(name: str, folder: pathlib.Path) -> Iterator[str]:
    """The URL of an empty database."""
    from tests import servers

    if name == "sqlite":
        yield f"sqlite:///{folder / 'app.db'}"
        return
    server: Any = servers.postgres() if name == "postgresql" else servers.mariadb()
    with server.database() as url:
        yield url


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", nargs=2, metavar=("URL", "SEED"), help="be the application")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--database", default="sqlite,postgresql,mariadb")
    parser.add_argument("--away", action="store_true", help="the server is away for a minute at the end")
    given = parser.parse_args()
    if given.write:
        write(given.write[0], int(given.write[1]))
        return 0
    from tests import servers

    servers.run_folder()
    held = True
    for name in given.database.split(","):
        with tempfile.TemporaryDirectory() as folder, database(name, pathlib.Path(folder)) as url:
            found = campaign(
                url, kills=given.kills, seed=given.seed, folder=pathlib.Path(folder), away=given.away,

            )  # fmt: skip
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        sys.stdout.flush()
        held = held and found.held
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
