"""A ledger with many endpoints of a thousand tenants, each with its secret, for `configuration.py`."""

from __future__ import annotations

import os
from typing import Any

from surehook.core import ids
from surehook.ledgers.postgres.ledger import PostgresLedger
from surehook.ledgers.sqlite import SqliteLedger

TENANTS = 1_000
NOW = 1_767_225_600_000


def endpoint_id(number: int) -> bytes:
    return ids.uuid7(NOW, number.to_bytes(10, "big"))


def rows(count: int) -> Any:
    """Endpoints and their secrets, as columns of texts and bytes."""
    for number in range(count):
        name = f"h{number % 500}.example.com"
        yield (
            endpoint_id(number), f"t{number % TENANTS}", f"https://{name}/hooks/{number}", '["document.*"]', "active", 0,
            "none", "{}", "An endpoint of a customer", NOW, NOW,
        )  # fmt: skip


COLUMNS = 'id, tenant, url, event_types, status, failure_count, "order", headers, description, created_at, updated_at'


async def fill_sqlite(path: str, count: int) -> None:
    ledger = SqliteLedger(path)
    await ledger.open(now=NOW)

    def work(session: Any) -> None:
        connection = session.connection
        with session.writing():
            connection.executemany(
                "insert into tenant values (?, ?, 0, ?)", ((f"t{n}", "T", NOW) for n in range(TENANTS))
            )
            connection.executemany(
                f"insert into endpoint ({COLUMNS}) values (?,?,?,?,?,?,?,?,?,?,?)", rows(count)
            )
            secrets = ((endpoint_id(n), endpoint_id(n), os.urandom(32), NOW) for n in range(count))
            connection.executemany(
                "insert into secret (endpoint, id, kind, material, created_at) values (?, ?, 'v1', ?, ?)",
                secrets,
            )

    await ledger._write(work)
    await ledger.close()


async def fill_postgres(url: str, count: int) -> None:
    ledger = PostgresLedger(url)
    await ledger.open(now=NOW)
    async with ledger._working.lend() as session:
        connection = await session.connected()
        await connection.copy_records_to_table(
            "tenant", records=[(f"t{n}", "T", False, NOW) for n in range(TENANTS)],
            columns=["id", "name", "strict", "created_at"],
        )  # fmt: skip
        columns = [name.strip(' "') for name in COLUMNS.split(",")]
        await connection.copy_records_to_table("endpoint", records=rows(count), columns=columns)
        await connection.copy_records_to_table(
            "secret", records=((endpoint_id(n), endpoint_id(n), "v1", os.urandom(32), NOW) for n in range(count)),
            columns=["endpoint", "id", "kind", "material", "created_at"],
        )  # fmt: skip
        await connection.execute("analyze endpoint; analyze secret; analyze tenant")
    await ledger.close()
