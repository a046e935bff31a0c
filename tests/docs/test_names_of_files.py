"""Files that pages and docstrings name are there: a name that leads nowhere costs a reader more than none."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md"]
CODE = [path for room in ("src/surehook", "lab") for path in sorted((ROOT / room).rglob("*.py"))]
NAMED = re.compile(r"\b(?:[a-z_0-9]+/)+[a-z_0-9]+\.py\b")
OF_APPLICATIONS = {"shop/hooks.py"}  # in examples
THERE = [
    "/" + str(path.relative_to(ROOT))
    for room in ("src", "lab", "tests")
    for path in (ROOT / room).rglob("*.py")
]


def missing(text: str) -> set[str]:
    """Names of files in a text that no file's path ends with."""
    named = set(NAMED.findall(text)) - OF_APPLICATIONS
    return {one for one in named if not any(path.endswith("/" + one) for path in THERE)}


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def test_a_name_that_leads_nowhere_is_found() -> None:
    assert missing("`delivery/engine.py` and `delivery/motor.py`") == {"delivery/motor.py"}


def test_pages_name_files_that_are_there() -> None:
    assert {
        str(page.relative_to(ROOT)): found for page in PAGES if (found := missing(page.read_text()))
    } == {}


def test_docstrings_name_files_that_are_there() -> None:
    found = {str(path.relative_to(ROOT)): missing("\n".join(docstrings(path))) for path in CODE}
    assert {name: names for name, names in found.items() if names} == {}
