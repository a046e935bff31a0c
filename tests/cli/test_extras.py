"""A library that an extra brings and that is not there is named, with the words that install it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.budget import every

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


@pytest.mark.parametrize("command", every(3, [("status",), ("plan",), ("up",)]))
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


def test_the_command_itself_names_the_extra_it_belongs_to() -> None:
    code = WITHOUT.replace("surehook.cli.main import run", "surehook.__main__ import main as run")
    code = code.replace("run({args!r})", "run()").format(missing=("typer",))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert ran.returncode == 1 and "Traceback" not in ran.stderr
    assert "pip install 'surehook[server]'" in ran.stderr


def test_a_module_that_fails_while_it_is_loaded_is_named_with_its_error(tmp_path: Path) -> None:
    (tmp_path / "lacking_shop.py").write_text("import os\nos.environ['HOOK_SECRET']\n")
    ran = subprocess.run(
        [sys.executable, "-m", "surehook", "inbox", "stats", "lacking_shop:inbox"],
        cwd=tmp_path, capture_output=True, text=True, check=False, env={},
    )  # fmt: skip

    assert ran.returncode == 2 and "defect" not in ran.stderr
    assert "the module lacking_shop failed while it was loaded: KeyError: 'HOOK_SECRET'" in ran.stderr
