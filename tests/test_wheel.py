"""The wheel that users install: it holds the package and nothing else, and the package works where there is no checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from surehook import __version__

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "surehook"
BUILD_S, INSTALL_S, COMMAND_S = 180, 300, 60
# By the versions that everything else is tested with; nothing of this checkout is on the path of what is installed.
ENVIRONMENT = {
    name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SUREHOOK_"))
}
ENVIRONMENT |= {"PIP_CONSTRAINT": str(ROOT / "constraints.txt"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
ENVIRONMENT["SUREHOOK_PORT"] = "0"  # whoever has the usual one meanwhile
# Each does something on this machine alone, without a server.
COMMANDS = {
    "--version": f"surehook {__version__}",
    "version": "python ",
    "config show": "database_url",
    "doctor --no-server": "ok",
    "completion bash": "_SUREHOOK_COMPLETE",
    "policy list": "standard",
    "workflow draw signing": "signed",
    "inbox ddl --dialect sqlite": "CREATE TABLE",
    "migrate plan": "CREATE TABLE",
}

# What docs/inbox.md and docs/django.md say is enough, with a program that needs all of it.
EXTRAS = {
    "inbox": (
        ["aiosqlite"],
        """
import asyncio
from surehook.inbox import AsyncInbox, Inbox

inbox = Inbox("sqlite:///inbox.db")
inbox.create_tables()
inbox.close()

async def main():
    inbox = AsyncInbox("sqlite:///inbox.db")
    print(await inbox.work())
    await inbox.close()

asyncio.run(main())
""",
    ),
    "django": (
        [],
        """
import django
from django.conf import settings
from django.core.management import call_command

database = {"ENGINE": "django.db.backends.sqlite3", "NAME": "app.db"}
settings.configure(INSTALLED_APPS=["surehook.inbox.django"], DATABASES={"default": database}, SUREHOOK_INBOX={"sources": []})
django.setup()
call_command("migrate", verbosity=0)
from surehook.inbox.django import inbox

print(inbox.work())
""",
    ),
}

pytestmark = pytest.mark.slow


def ran(*command: str, folder: Path, seconds: float, status: int = 0) -> str:
    """Run a command in a folder within so many seconds; its standard output."""
    ended = subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=seconds, check=False
    )
    assert ended.returncode == status, f"{command}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, as a release is."""
    folder = tmp_path_factory.mktemp("wheel")
    ran(sys.executable, "-m", "build", "--outdir", str(folder), ".", folder=ROOT, seconds=BUILD_S)
    (made,) = folder.glob("*.whl")
    return made


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    assert {name.partition("/")[0] for name in held} == {"surehook", f"surehook-{__version__}.dist-info"}
    source = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in held if name.startswith("surehook/")} == source


def test_what_is_installed_works_where_there_is_no_checkout(wheel: Path, tmp_path: Path) -> None:
    place, empty = tmp_path / "environment", tmp_path / "empty"
    empty.mkdir()
    ran(sys.executable, "-m", "venv", str(place), folder=tmp_path, seconds=COMMAND_S)
    python, surehook = str(place / "bin" / "python"), str(place / "bin" / "surehook")
    ran(python, "-m", "pip", "install", "--quiet", f"{wheel}[server]", folder=tmp_path, seconds=INSTALL_S)
    for name in ("lab", "tests"):
        ran(python, "-c", f"import {name}", folder=empty, seconds=COMMAND_S, status=1)
    for words, part in COMMANDS.items():
        assert part in ran(surehook, *words.split(), folder=empty, seconds=COMMAND_S), words
    for gone in ("bench", "sim"):
        ran(surehook, gone, folder=empty, seconds=COMMAND_S, status=2)
    last = ran(surehook, "demo", "--documents", "40", folder=empty, seconds=2 * COMMAND_S).splitlines()[-1]
    assert re.match(r"demo: accepted=600 .* lost=0 .* applied=160 applied_twice=0 ", last), last
    assert list(empty.iterdir()) == []


@pytest.mark.parametrize("extra", EXTRAS)
def test_an_extra_brings_all_that_its_page_says_it_does(wheel: Path, tmp_path: Path, extra: str) -> None:
    """Tests have every package, and so does whoever installs by the constraints of tests."""
    place, beside, program = tmp_path / "environment", *EXTRAS[extra]
    ran(sys.executable, "-m", "venv", str(place), folder=tmp_path, seconds=COMMAND_S)
    python = str(place / "bin" / "python")
    wanted = [f"{wheel}[{extra}]", *beside]
    ran(python, "-m", "pip", "install", "--quiet", *wanted, folder=tmp_path, seconds=INSTALL_S)
    assert ran(python, "-c", program, folder=tmp_path, seconds=COMMAND_S) == "0\n"
