"""What a start loads before it works, since work that waits in a ledger waits for it."""

import subprocess
import sys

import pytest

WORKS = """
import sys, surehook.cli.main, surehook.cli.serve, surehook.bootstrap, surehook.telemetry.logging, surehook.wire.client
import surehook.health.ledger, surehook.health.redis, surehook.wakeups.postgres
from surehook.ledgers.{ledger} import *
print(*(name for name in {late} if name in sys.modules))
"""
LATE = ("sqlalchemy", "alembic", "starlette", "pydantic", "uvicorn", "surehook.api.serving")


@pytest.mark.parametrize("ledger", ["postgres.ledger", "sqlite"])
def test_a_start_delivers_before_it_loads_what_only_lists_and_the_door_need(ledger: str) -> None:
    code = WORKS.format(ledger=ledger, late=LATE)
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []
