"""A library that an extra brings and that is not there is named, with the words that install it."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = """
import importlib.abc, sys
class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
from surehook.cli.main import run
sys.exit(run({args!r}))
"""
POSTGRES = ("--database-url", "postgresql://nobody@127.0.0.1:1/none")


def run(*args: str, missing: tuple[str, ...], **env: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(missing=missing, args=list(args))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)


@pytest.mark.parametrize("command", [("status",), ("plan",), ("up",)])
def test_migrate_names_the_extra_of_the_database(command: tuple[str, ...]) -> None:
    ran = run("migrate", *command, *POSTGRES, missing=("asyncpg",))

    assert ran.returncode == 2 and "Traceback" not in ran.stderr
    assert "PostgreSQL needs the library asyncpg" in ran.stderr
    assert "pip install 'surehook[postgres]'" in ran.stderr


def test_doctor_names_every_extra_that_is_missing() -> None:
    ran = run(
        "doctor", "--no-server", missing=("asyncpg", "redis", "aio_pika", "aiormq"),
        SUREHOOK_DATABASE_URL=POSTGRES[1], SUREHOOK_BROKER_URL="amqp://127.0.0.1:1", SUREHOOK_PORT="0",
        SUREHOOK_REDIS_URL="redis://127.0.0.1:1",
    )  # fmt: skip

    assert ran.returncode == 7 and "Traceback" not in ran.stderr
    for extra in ("postgres", "redis", "rabbitmq"):
        assert f"pip install 'surehook[{extra}]'" in ran.stdout


def test_serve_names_the_extra_too() -> None:
    ran = run("serve", "--port", "0", *POSTGRES, missing=("asyncpg",))

    assert ran.returncode == 2 and "pip install 'surehook[postgres]'" in ran.stderr


def test_what_is_missing_beside_the_extra_is_a_defect_and_named_as_such() -> None:
    ran = run("migrate", "status", *POSTGRES, missing=("msgspec",))

    assert ran.returncode != 0 and "surehook[postgres]" not in ran.stderr
