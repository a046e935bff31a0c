"""Tidiness that no linter knows: who may look at a clock, what may not be in a file, how long one may be.

Calls are found in the syntax tree, with imports followed (`from time import sleep` is `time.sleep`), so that
neither a word in a comment nor a name of our own is taken for one. Each exception has its reason beside it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "lab", "tests", "docs", ".ci")
CACHES = {"__pycache__", ".hypothesis"}
SOURCE = ROOT / "src" / "surehook"
LAB = ROOT / "lab"
LINES_MAX = 400
# Longer than that, each with the most it may have: it may shrink and not grow.
LONG_FILES: dict[str, int] = {}

EVERYWHERE = {
    "asyncio.wait_for": "asyncio.timeout: wait_for can swallow a cancellation on 3.11",
    "datetime.datetime.utcnow": "an instant without its zone",
}
WORLD = {
    "time.sleep": "ports.Clock.sleep",
    "time.time": "ports.Clock.now",
    "time.time_ns": "ports.Clock.now",
    "time.monotonic": "ports.Clock.boot",
    "time.monotonic_ns": "ports.Clock.boot",
    "time.perf_counter": "ports.Clock.boot",
    "time.clock_gettime": "ports.Clock.boot",
    "datetime.datetime.now": "ports.Clock.now",
    "datetime.datetime.today": "ports.Clock.now",
    "datetime.date.today": "ports.Clock.now",
    "os.urandom": "ports.Entropy.bits",
    "random.": "ports.Entropy.random",
    "secrets.": "ports.Entropy.bits",
    "uuid.": "core.ids",
}
# Rooms (ending in /) and files, under src/surehook and of the lab, that may reach for the world themselves.
ALLOWED = {
    "host/": "it is the clock and the chance",
    "demo/": "plays in real time with processes of its own",
    "cli/": "runs on a person's clock: waits, polls, prints the time of day",
    "client/": "runs inside other programs; all four are arguments with these defaults",
    "outbox/outbox.py": "runs inside other programs; both are arguments with these defaults",
    "outbox/stores.py": "runs in a process of its own; the clock is an argument with this default",
    "verify.py": "the public face of signing: the machine's clock unless told otherwise",
    "lab/bench/": "measures real processes on the real clock",
    "lab/sim/campaign.py": "how long worlds took, for the last line; no world sees it",
    "ledgers/postgres/lookback.py": "how often walks look over everything; nothing of the book depends on it",
    "ledgers/sqlite/file.py": "how often the disk is looked at; nothing of the ledger depends on it",
    "ledgers/common/count_cache.py": "how long a count took; switched off in a simulated world",
}
# Chance from a seed is no chance: the simulated world draws everything from one.
SEEDED = {"random.Random": "lab/sim/"}
# Tests wait for what happens, not for time to pass.
SLEEPING_TESTS = {
    "tests/demo/test_play.py": "polls a process of its own",
    "tests/docs/terminal.py": "polls what a terminal shows",
    "tests/servers/": "waits for other people's programs to start and to end",
    "tests/e2e/": "polls servers that run as processes of their own",
    "tests/adversary/": "lets an attack go on beside a server that runs as a process of its own",
    "tests/inbox/test_failures.py": "polls a process of its own",
}

UNFINISHED = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b|\bNotImplementedError\b")
MACHINE = re.compile(r"(?<![\w./~-])/(?:work|root|home|tmp|Users)/")
REGISTRIES = re.compile(
    r"\b(?:pypi|pythonhosted|npmjs|yarnpkg|crates|rubygems|proxy\.golang|conda|anaconda)\.(?:org|com|io)\b"
)


def files() -> list[Path]:
    """Everything that is ours: the folders below, and the files at the root; no caches, no environment, no server's database."""
    inside = (
        path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if not CACHES & set(path.parts)
    )
    beside = (path for path in ROOT.iterdir() if not path.suffix.startswith(".db") and path.name != ".git")
    return sorted(path for path in (*inside, *beside) if path.is_file())


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


FILES = files()
PYTHON = [path for path in FILES if path.suffix == ".py"]
PRODUCT = [path for path in PYTHON if path.is_relative_to(SOURCE) or path.is_relative_to(LAB)]


@cache
def used(text: str) -> frozenset[tuple[str, int]]:
    """The dotted names that a module uses, imports resolved, with their lines."""
    return frozenset(_used(text))


def _used(text: str) -> Iterator[tuple[str, int]]:
    tree = ast.parse(text)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                known[one.asname or one.name.partition(".")[0]] = (
                    one.name if one.asname else one.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for one in node.names:
                known[one.asname or one.name] = f"{node.module}.{one.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and (dotted := _dotted(node)) is not None:
            first, dot, rest = dotted.partition(".")
            if first in known:
                yield known[first] + dot + rest, node.lineno


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        before = _dotted(node.value)
        return None if before is None else f"{before}.{node.attr}"
    return None


def banned(text: str, names: dict[str, str]) -> list[tuple[str, int, str]]:
    """What a module uses of the banned names: the name, its line, and what to use instead."""
    return sorted(
        (name, line, instead)
        for name, line in used(text)
        for ban, instead in names.items()
        if name == ban or (ban.endswith(".") and name.startswith(ban))
    )


def is_in(name: str, places: dict[str, str]) -> bool:
    return any(name == place or (place.endswith("/") and name.startswith(place)) for place in places)


def inside(path: Path) -> str:
    """A file of the package from its folder, one of the lab from the checkout."""
    return path.relative_to(SOURCE if path.is_relative_to(SOURCE) else ROOT).as_posix()


def test_the_walk_sees_what_it_is_for():
    text = (
        "import time, asyncio as a, random\nfrom time import sleep as nap\nfrom datetime import datetime\n"
        "from asyncio import wait_for\nfrom os import urandom\n"
        "# time.sleep\n'datetime.now'\ntime.sleep(1)\nnap(1)\na.wait_for(x, 1)\nwait_for(x, 1)\n"
        "datetime.now()\nrandom.choice([])\nurandom(4)\nmine.time.sleep(1)\n_wait_for(x)\n"
    )
    found = [(name, line) for name, line, _ in banned(text, EVERYWHERE | WORLD)]
    assert sorted(found) == [
        ("asyncio.wait_for", 10),
        ("asyncio.wait_for", 11),
        ("datetime.datetime.now", 12),
        ("os.urandom", 14),
        ("random.choice", 13),
        ("time.sleep", 8),
        ("time.sleep", 9),
    ]


def test_nobody_uses_what_is_banned_everywhere():
    found = [(name_of(path), *use) for path in PYTHON for use in banned(read(path), EVERYWHERE)]
    assert found == []


def test_only_the_host_and_the_outermost_programs_touch_clock_and_chance():
    found = [
        f"{inside(path)}:{line} {name}: {instead}"
        for path in PRODUCT
        if not is_in(inside(path), ALLOWED)
        for name, line, instead in banned(read(path), WORLD)
        if not inside(path).startswith(SEEDED.get(name, "-"))
    ]
    assert found == []


def test_tests_do_not_sleep():
    found = [
        f"{name_of(path)}:{line}"
        for path in PYTHON
        if path.is_relative_to(ROOT / "tests") and not is_in(name_of(path), SLEEPING_TESTS)
        for _, line, _ in banned(read(path), {"time.sleep": ""})
    ]
    assert found == []


def test_no_file_of_the_product_is_long():
    lines = {inside(path): len(read(path).splitlines()) for path in PRODUCT}
    assert {name: count for name, count in lines.items() if count > LONG_FILES.get(name, LINES_MAX)} == {}


def test_every_exception_is_still_needed():
    for place in ALLOWED:
        assert any(is_in(inside(path), {place: ""}) and banned(read(path), WORLD) for path in PRODUCT), place
    for place in SLEEPING_TESTS:
        sleeping = (path for path in PYTHON if is_in(name_of(path), {place: ""}))
        assert any(banned(read(path), {"time.sleep": ""}) for path in sleeping), place
    for place in LONG_FILES:
        assert len(read(SOURCE / place).splitlines()) > LINES_MAX, place


@pytest.mark.parametrize(
    ("what", "example"),
    [
        (UNFINISHED, "# TO" + "DO: later"),
        (MACHINE, "see /ro" + "ot/x"),
        (REGISTRIES, "https://pyp" + "i.org/simple"),
    ],
    ids=["unfinished work", "a path of one machine", "a registry's host"],
)
def test_no_file_contains(what: re.Pattern[str], example: str):
    assert what.search(example)
    found = [
        f"{name_of(path)}:{number}"
        for path in FILES
        if path != Path(__file__)
        for number, line in enumerate(read(path).splitlines(), 1)
        if what.search(line)
    ]
    assert found == []
