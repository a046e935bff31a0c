"""Mistakes of the first hour in Django, each one line that says what to set or to run. Real projects, real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.inbox.house import SECRET

PLACE = "surehook.inbox.django:inbox"
PROJECT = {
    "manage.py": """
import os, sys
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "site1.settings")
from django.core.management import execute_from_command_line
execute_from_command_line(sys.argv)
""",
    "site1/settings.py": f"""
from surehook.inbox import sources
DATABASES = {{"default": {{"ENGINE": "django.db.backends.sqlite3", "NAME": "db.sqlite3"}}}}
INSTALLED_APPS = ["surehook.inbox.django", "shop"]
SUREHOOK_INBOX = {{"sources": [sources.named("standard", name="partner", secret="{SECRET}")]}}
USE_TZ = True
""",
    "site1/apart.py": "from site1.settings import *\nINSTALLED_APPS = ['shop']\n",
    "site1/typo.py": "from site1.settings import *\nSUREHOOK_INBOX = {'sorces': []}\n",
    "site1/alias.py": "from site1.settings import *\nSUREHOOK_INBOX = SUREHOOK_INBOX | {'using': 'defualt'}\n",
    "site1/unset.py": "from site1.settings import *\ndel SUREHOOK_INBOX\n",
    "site1/empty.py": "from site1.settings import *\nSUREHOOK_INBOX = {'sources': []}\n",
    "site1/silent.py": "from site1.settings import *\nSUREHOOK_INBOX = SUREHOOK_INBOX | {'modules': 'hooks'}\n",
    "site1/fails.py": "import os\nos.environ['SHOP_SECRET']\n",
    "shop/webhooks.py": "from surehook.inbox.django import inbox\ninbox.on('partner')(lambda event, tx: None)\n",
}

Say = Callable[..., str]


@pytest.fixture
def say(tmp_path: Path) -> Say:
    """Runs a command in the folder of a project; what is on stderr, where it must be one line or two."""
    for name, text in PROJECT.items():
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)

    def ran(*words: str, settings: str | None = None, code: int = 2) -> str:
        env = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
        if settings is not None:
            env["DJANGO_SETTINGS_MODULE"] = settings
        found = subprocess.run(
            [sys.executable, *words],
            cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert (found.returncode, found.stdout) == (code, "")
        assert "Traceback" not in found.stderr and "defect" not in found.stderr
        assert len(found.stderr.splitlines()) <= 2
        return found.stderr

    return ran


def test_the_command_line_says_what_to_set_where_django_has_no_settings(say: Say) -> None:
    said = say("-m", "surehook", "inbox", "status", PLACE)
    assert said.startswith("error: DJANGO_SETTINGS_MODULE: it is not set")
    assert "the module that manage.py names" in said


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ("site2.settings", "ModuleNotFoundError: No module named 'site2'"),
        ("site1.fails", "KeyError: 'SHOP_SECRET'"),
        ("site1.typo", "SUREHOOK_INBOX has no 'sorces'; it may have sources"),
        (
            "site1.alias",
            "SUREHOOK_INBOX['using'] is 'defualt', and DATABASES has no such alias; did you mean 'default'?",
        ),
    ],
)
def test_the_command_line_names_settings_with_which_django_cannot_begin(
    say: Say, settings: str, cause: str
) -> None:
    said = say("-m", "surehook", "inbox", "status", PLACE, settings=settings)
    assert said.startswith(f"error: DJANGO_SETTINGS_MODULE: Django cannot begin with {settings}: ")
    assert cause in said
    assert "hint:  run it in the folder of manage.py" in said


@pytest.mark.parametrize(
    "words",
    [("surehook_work", "--once"), ("surehook_release", "d", "--by=a", "--reason=b"), ("surehook_grant", "d", "--by=a", "--reason=b")],
)  # fmt: skip
def test_a_command_without_tables_says_that_migrate_makes_them(say: Say, words: tuple[str, ...]) -> None:
    said = say("manage.py", *words, code=1)
    assert said.startswith("CommandError: OperationalError: no such table: surehook_inbox_")
    assert said.endswith("; its tables are missing: `manage.py migrate` makes them\n")


def test_the_command_line_says_so_too(say: Say) -> None:
    said = say("-m", "surehook", "inbox", "status", PLACE, settings="site1.settings", code=1)
    assert said.endswith("; its tables are missing: `manage.py migrate` makes them\n")


@pytest.mark.parametrize("words", [(), ("--once",)], ids=["for good", "once"])
def test_workers_without_handlers_are_told_where_django_looks_for_them(
    say: Say, words: tuple[str, ...]
) -> None:
    said = say("manage.py", "surehook_work", *words, settings="site1.silent", code=1)
    assert said.startswith("CommandError: there is no handler")
    assert said.endswith("SUREHOOK_INBOX['modules'] is 'hooks'\n")


@pytest.mark.parametrize("settings", ["site1.unset", "site1.empty"])
def test_a_handler_without_any_source_is_told_of_the_setting(say: Say, settings: str) -> None:
    said = say("-m", "surehook", "inbox", "status", PLACE, settings=settings)
    assert said.startswith("error: source: this inbox has no source 'partner'")
    assert "list them in SUREHOOK_INBOX['sources']" in said


def test_an_app_that_is_not_installed_is_named(say: Say) -> None:
    said = say("-m", "surehook", "inbox", "status", PLACE, settings="site1.apart", code=1)
    assert said.endswith(
        "; its tables are missing: `manage.py migrate` makes them, with surehook.inbox.django in INSTALLED_APPS\n"
    )


def test_django_itself_is_named_by_its_extra(say: Say) -> None:
    blocked = "import sys; sys.modules['django'] = None; from surehook.inbox.django import inbox"
    found = subprocess.run(
        [sys.executable, "-c", blocked], capture_output=True, text=True, timeout=60, check=False
    )
    assert found.stderr.splitlines()[-1].endswith(
        "surehook.inbox.django needs the package django: pip install 'surehook[django]'"
    )
