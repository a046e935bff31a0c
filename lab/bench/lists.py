"""Cost of every list over many finished deliveries: `python -m lab.bench.lists --ledger sqlite|pg [--rows N]`.

A file, or a private server, is filled by itself: thirty days of finished deliveries of 200 tenants and 2,000 endpoints, few of
which have most, four deliveries to an event, one in a hundred with a retry; one in a hundred is open, one in fifty a dead
letter; and values that one event in fifty thousand has. Then lists are asked for through the ledger, each until its page of
fifty is full or nothing is left, as a person's command does, and one page deep in the list where there is one. What else is
asked beside so many rows stands in `lists_beside.py`. Judged is CPU
time, of this process and of the server's backends: what other processes do to the clock is not a list's cost. The time
on the wall stands beside it.

Ten million rows need 4 GB (SQLite) or 7 GB (PostgreSQL) and ten minutes; a million one and one. Figures of one machine.
"""
# ruff: noqa: T201 (a program that prints)

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import asyncpg

from lab.bench import lists_beside, lists_postgres, lists_sqlite
from lab.bench.lists_sqlite import NOW, RARE_ENDPOINT, RARE_TENANT, RARE_TYPE, TENANTS
from surehook.core.instants import DAY_MS, HOUR_MS
from surehook.core.model import State
from surehook.core.receipt import STAGES
from surehook.ledgers.postgres.connecting import connect_to
from surehook.ledgers.postgres.indexing import index_one
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.postgres.session import PostgresSession
from surehook.ledgers.sqlite import SqliteLedger
from surehook.ports.reading import DeliveryFilter, EventFilter, NoticeFilter
from tests.servers import Postgres

PAGE, DEEP_PAGES = 50, 40
LIMIT_MS, ID_LIMIT_MS = 150.0, 30.0
LATER = NOW + 2 * HOUR_MS  # PostgreSQL's newest day is over then, and is indexed
STATES: tuple[str, ...] = get_args(State)
OUTCOMES = ("delivered", "refused", "garbled", "unreachable")


class Question(NamedTuple):
    name: str
    method: str
    where: Any
    by_page: bool = False  # what is promised is a page: the list may come back short, and walk


def questions(now: int) -> Iterator[Question]:
    """Every list with one filter, common, rare and never; and some with two."""
    since = now - 9 * DAY_MS
    tenants = ("tenant_0", "tenant_199", RARE_TENANT, "tenant_none")
    endpoints = {
        "big": bytes(16),
        "small": (199 + 9 * TENANTS).to_bytes(16, "big"),
        "rare": RARE_ENDPOINT,
        "none": b"n" * 16,
    }
    types = ("type.7", RARE_TYPE, "type.none")
    ranges: dict[str, dict[str, Any]] = {
        "since": {"since": since},
        "until": {"until": since},
        "hour": {"since": since, "until": since + HOUR_MS},
        "today": {"since": now - HOUR_MS},
    }
    of_deliveries: dict[str, dict[str, Any]] = {
        "all": {}, **{f"tenant {one}": {"tenant": one} for one in tenants},
        **{f"endpoint {one}": {"endpoint": id} for one, id in endpoints.items()},
        **{f"type {one}": {"type": one} for one in types},
        **{f"outcome {one}": {"outcome": one} for one in OUTCOMES},
        **{f"receipt {one}": {"receipt": one} for one in STAGES},
        **ranges,
    }  # fmt: skip
    subjects: dict[str, dict[str, Any]] = {f"subject {one}": {"subject": one} for one in ("doc_7", "none")}
    states: dict[str, dict[str, Any]] = {f"state {one}": {"state": one} for one in STATES}
    for name, where in {**of_deliveries, **states, **subjects}.items():
        yield Question(f"deliveries: {name}", "deliveries", DeliveryFilter(**where))
    del of_deliveries["outcome delivered"]  # of a dead letter: a contradiction
    for name, where in {**of_deliveries, **subjects}.items():
        yield Question(f"dead letters: {name}", "dead_letters", DeliveryFilter(**where))
    for name, where in {
        "all": {}, **{f"tenant {one}": {"tenant": one} for one in tenants},
        **{f"type {one}": {"type": one} for one in types}, **subjects, **ranges,
        "correlation": {"correlation_id": "c4000"}, "correlation none": {"correlation_id": "none"},
    }.items():  # fmt: skip
        yield Question(f"events: {name}", "events", EventFilter(**where))
    of_notices: dict[str, dict[str, Any]] = {
        "all": {}, **{f"tenant {one}": {"tenant": one} for one in tenants},
        **{f"endpoint {one}": {"endpoint": id} for one, id in endpoints.items()},
        "kind rare": {"kind": "delivery.rare"}, "kind none": {"kind": "none"},
        "since": {"since": since}, "since today": {"since": now},
    }  # fmt: skip
    for name, where in of_notices.items():
        yield Question(f"notices: {name}", "notices", NoticeFilter(**where))
    of_two: dict[str, dict[str, Any]] = {
        "dead of a tenant": {"state": "dead", "tenant": "tenant_199"},
        "garbled of a type": {"outcome": "garbled", "type": RARE_TYPE},
        "delivered of the rare type": {"state": "delivered", "type": RARE_TYPE},
        "receipts of a tenant": {"receipt": "finalized", "tenant": "tenant_199"},
        "subject of a tenant": {"subject": "doc_7", "tenant": "tenant_0"},
        "type of a tenant": {"type": "type.7", "tenant": "tenant_199"},
    }
    for name, where in of_two.items():
        yield Question(f"deliveries: {name}", "deliveries", DeliveryFilter(**where), True)


class Cost(NamedTuple):
    """Cost of one list, from its first page until it was full or at its end, and of its dearest page; milliseconds."""

    rows: int
    pages: int
    whole_ms: float
    page_ms: float
    deep_ms: float | None
    wall_ms: float  # of the whole


class Asking:
    """Asks the ledger, and charges what its processes did meanwhile."""

    def __init__(self, ledger: Any, cpu_s: Callable[[], float]) -> None:
        self._ledger = ledger
        self._cpu_s = cpu_s
        self._wall_ms = 0.0
        self.figures: dict[str, Cost] = {}

    async def all(self) -> float:
        """Print every list's cost; the worst of those with one filter or none, in milliseconds."""
        print(
            f"{'CPU of':44}{'rows':>6}{'pages':>6}{'whole ms':>10}{'dearest page':>14}{'deep page':>11}{'wall':>9}  bound"
        )
        worst = 0.0
        for question in questions(NOW):
            cost = self.figures[question.name] = await self._cost(question)
            worst = max(worst, self._show(question.name, cost, LIMIT_MS, question.by_page))
        return worst

    async def by_id(self) -> float:
        """One delivery, its history and one event, found by their ids."""
        ledger = self._ledger
        where = DeliveryFilter(until=NOW - 9 * DAY_MS)
        (seen, *_) = (await ledger.deliveries(where, limit=1, after=None)).data
        worst = 0.0
        for name, ask in (
            ("one delivery by id", partial(ledger.delivery, seen.id)),
            ("its history", partial(ledger.attempts, seen.id)),
            ("its event", partial(ledger.event, seen.event)),
        ):
            await ask()  # its text is made once
            _, took = await self._timed(ask)
            worst = max(worst, took)
            self.figures[name] = Cost(1, 1, took, took, None, self._wall_ms)
            self._show(name, self.figures[name], ID_LIMIT_MS)
        return worst

    def _show(self, name: str, cost: Cost, bound: float, by_page: bool = False) -> float:
        deep = "" if cost.deep_ms is None else f"{cost.deep_ms:.1f}"
        judged = max(cost.page_ms if by_page else cost.whole_ms, cost.deep_ms or 0.0)
        said = f"{bound:5.0f} {'a page' if by_page else 'whole':6}{' late' if judged > bound else ''}"
        print(
            f"{name:44}{cost.rows:6}{cost.pages:6}{cost.whole_ms:10.1f}{cost.page_ms:14.1f}{deep:>11}{cost.wall_ms:9.1f} {said}",
            flush=True,
        )
        return judged

    async def _cost(self, question: Question) -> Cost:
        ask = partial(self._page, question)
        await ask(None)  # texts of statements are made once for a form
        rows, pages, whole, worst, wall, after = 0, 0, 0.0, 0.0, 0.0, None
        while rows < PAGE and (after is not None or pages == 0):
            page, took = await self._timed(partial(ask, after))
            rows, pages, whole, worst = rows + len(page.data), pages + 1, whole + took, max(worst, took)
            wall += self._wall_ms
            after = page.next
        deep = None
        for place in range(DEEP_PAGES):
            if after is None:
                break
            page, took = await self._timed(partial(ask, after))
            after = page.next
            deep = took if place == DEEP_PAGES - 1 else None
        return Cost(rows, pages, whole, worst, deep, wall)

    async def _page(self, question: Question, after: bytes | None) -> Any:
        return await getattr(self._ledger, question.method)(question.where, limit=PAGE, after=after)

    async def _timed(self, ask: Callable[[], Awaitable[Any]]) -> tuple[Any, float]:
        start, began = self._cpu_s(), time.monotonic()
        answer = await ask()
        self._wall_ms = (time.monotonic() - began) * 1e3
        return answer, (self._cpu_s() - start) * 1e3


async def on_sqlite(path: Path, shown: dict[str, dict[str, Any]]) -> float:
    ledger = SqliteLedger(str(path))
    began = time.monotonic()
    await ledger.open(now=NOW)
    print(f"opened in {time.monotonic() - began:.2f} s")
    began, spent = time.monotonic(), time.process_time()
    while await ledger.index_lists():
        pass
    print(
        f"blocks are made, in {time.monotonic() - began:.0f} s and {time.process_time() - spent:.0f} s of CPU"
    )
    try:
        worst = await asked(Asking(ledger, time.process_time), "", shown)
        shown["beside"] = await lists_beside.all_of(ledger, f"sqlite:///{path}", time.process_time)
        return max(worst, worst_of(shown["beside"]))
    finally:
        await ledger.close()


def worst_of(beside: dict[str, Any]) -> float:
    """Dearest of the answers that have a promise: counting goes on after them."""
    return max(
        float(one.cpu_ms) for name, one in beside.items() if not name.startswith(lists_beside.UNJUDGED)
    )


async def on_postgres(url: str, shown: dict[str, dict[str, Any]]) -> float:
    """Twice: with the newest day as it is until it is over, and after that."""
    ledger = PostgresLedger(url, listers=1)
    began = time.monotonic()
    await ledger.open(now=NOW)
    print(f"opened in {time.monotonic() - began:.2f} s")
    await ledger.deliveries(DeliveryFilter(), limit=1, after=None)
    connection = await asyncpg.connect(url)
    lister = await connection.fetchval(
        "select pid from pg_stat_activity where application_name = 'surehook list' and datname = current_database()"
    )
    worst = 0.0
    try:
        for when, now in (("newest day not over", NOW), ("all days over", LATER)):
            print(when, await index_days(url, now=now), sep=": ")
            asking = Asking(ledger, lambda: time.process_time() + cpu_s(lister))
            worst = max(worst, await asked(asking, when, shown))
        pids = [
            row["pid"]
            for row in await connection.fetch(
                "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
            )
        ]
        shown["beside"] = await lists_beside.all_of(
            ledger, url, lambda: time.process_time() + sum(cpu_s(pid) for pid in pids)
        )
        worst = max(worst, worst_of(shown["beside"]))
    finally:
        await connection.close()
        await ledger.close()
    return worst


async def index_days(url: str, *, now: int) -> str:
    """As retention does it, one day after another."""
    session = PostgresSession(connect_to(url, "keep"), patience_s=lists_postgres.FILL_S)
    its = await session.value("select pg_backend_pid()")
    began, spent = time.monotonic(), cpu_s(its)
    while await index_one(session, now=now):
        pass
    size = await session.value("select pg_database_size(current_database()) / 1048576")
    spent = cpu_s(its) - spent
    await session.close()
    return f"days that are over are indexed, in {time.monotonic() - began:.0f} s, {spent:.0f} s of CPU; {size} MiB in all"


async def asked(asking: Asking, when: str, shown: dict[str, dict[str, Any]]) -> float:
    worst = max(await asking.all(), await asking.by_id() * LIMIT_MS / ID_LIMIT_MS)
    shown[when] = asking.figures
    return worst


def cpu_s(pid: int) -> float:
    """The seconds that a process has run, as the kernel counts them for its scheduler: in nanoseconds, not in ticks."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def sqlite(rows: int, shown: dict[str, dict[str, Any]]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book.db"
        asyncio.run(opened(SqliteLedger(str(path))))
        began = time.monotonic()
        lists_sqlite.fill(path, rows, now=NOW)
        print(f"{rows} deliveries, {path.stat().st_size >> 20} MiB, in {time.monotonic() - began:.0f} s")
        return asyncio.run(on_sqlite(path, shown))


def postgres(rows: int, shown: dict[str, dict[str, Any]]) -> float:
    server = Postgres.new(settings=lists_postgres.SETTINGS)
    try:
        server.ask("create database lists")
        asyncio.run(opened(PostgresLedger(server.url("lists"))))
        began = time.monotonic()
        lists_postgres.fill(server, "lists", rows, now=NOW)
        print(f"{rows} deliveries in {time.monotonic() - began:.0f} s")
        return asyncio.run(on_postgres(server.url("lists"), shown))
    finally:
        server.close()


async def opened(ledger: Any) -> None:
    await ledger.open(now=NOW)
    await ledger.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="deliveries (1,000,000)")
    parser.add_argument("--ledger", choices=("sqlite", "pg"), default="sqlite")
    parser.add_argument("--record", type=Path, help="keep the figures here, as JSON")
    given = parser.parse_args()
    shown: dict[str, dict[str, Any]] = {}
    worst = (postgres if given.ledger == "pg" else sqlite)(given.rows, shown)
    print(f"worst: {worst:.1f} ms of CPU; at most {LIMIT_MS:.0f} is asked for")
    if given.record is not None:
        keep(given.record, given.ledger, given.rows, shown)
    return 0 if worst <= LIMIT_MS else 1


def keep(path: Path, ledger: str, rows: int, shown: dict[str, dict[str, Any]]) -> None:
    figures = {
        when or "all": {
            name: {k: round(v, 1) if isinstance(v, float) else v for k, v in cost._asdict().items()}
            for name, cost in costs.items()
        }
        for when, costs in shown.items()
    }
    bounds = {"list_ms": LIMIT_MS, "id_ms": ID_LIMIT_MS}
    said = {"ledger": ledger, "rows": rows, "bounds": bounds, "figures": figures}
    path.write_text(json.dumps(said, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
