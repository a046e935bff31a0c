"""Connections, with the settings that each purpose needs.

    hot       accept, record, claim, and other short writes
    beat      the heartbeat alone, so that nothing delays it; what a power failure loses of it does not matter
    list      pages for people and the console, which must not delay the others
    keep      migrations and retention, which may take long

Plans of hot statements are made once, regardless of values, and never read a whole table: a queue that was empty when the
plan was made may hold a million rows when it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal

import asyncpg

from surehook.ledgers.postgres import arrays
from surehook.ledgers.postgres.session import Connect, Connection

Purpose = Literal["hot", "beat", "list", "keep"]
CONNECT_S = 5.0
# The longest wait for an answer: a lease is 15 s, and 5 s must be left to send.
PATIENCE_S: Mapping[Purpose, float] = {"hot": 10.0, "beat": 5.0, "list": 15.0, "keep": 120.0}
# A frozen node cannot delay its own eviction for longer.
IDLE_IN_TRANSACTION_MS = 5_000
PREPARED_STATEMENTS = 512

_EVERY = {
    "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS),
    "client_min_messages": "error",
    "default_transaction_isolation": "read committed",
    "jit": "off",
}
_HOT = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
}
# Lists are planned for their values, which decide the days to look at. They walk along indexes, so that the cost of a page
# depends on the rows it reads, even if the planner misjudges a day that was never analyzed.
_LIST = {
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    # The other processors are for the hot path.
    "max_parallel_workers_per_gather": "0",
}


def connect_to(url: str, purpose: Purpose, *, name: str = "surehook") -> Connect:
    """Return a function that connects to `url` with the settings of a purpose."""
    settings = {**_EVERY, **_timeouts(purpose)}
    if purpose in ("hot", "beat"):
        settings |= _HOT
    elif purpose == "list":
        settings |= _LIST
    # A commit that does not wait for the disk would break the guarantee. A setting that waits longer is left alone.
    durable = (
        "set synchronous_commit = off"
        if purpose == "beat"
        else "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') "
        "in ('off', 'local')"
    )
    sentences = "; ".join([*(f"set {key} = '{value}'" for key, value in settings.items()), durable])

    async def connect() -> Connection:
        async with asyncio.timeout(CONNECT_S):
            connection = await asyncpg.connect(
                url,
                timeout=CONNECT_S,
                statement_cache_size=PREPARED_STATEMENTS,
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=0,
                server_settings={"application_name": f"{name} {purpose}"},
            )
            try:
                await connection.execute(sentences)
                arrays.install(connection)
            except BaseException:
                connection.terminate()
                raise
            return connection

    return connect


def _timeouts(purpose: Purpose) -> dict[str, str]:
    """Return time limits a little below our own, so that the server reports the reason."""
    patience_ms = int(PATIENCE_S[purpose] * 1000)
    return {"statement_timeout": str(patience_ms * 9 // 10), "lock_timeout": str(patience_ms * 6 // 10)}
