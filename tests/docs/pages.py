"""The project's pages as the tests read them: texts, links, marked examples."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
}

_EXAMPLE = re.compile(r"<!-- runs: (\w+) -->\n```\w+\n(.*?)\n```", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")


def examples(page: str) -> dict[str, str]:
    """The examples of a page that carry a mark, by name."""
    return dict(_EXAMPLE.findall(PAGES[page]))


def function(page: str, example: str, name: str):
    """A function that a page's Python example defines, ready to be called."""
    space: dict[str, object] = {}
    exec(compile(examples(page)[example], f"{page}:{example}", "exec"), space)
    return space[name]


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return _FENCED.sub("", PAGES[page])


def links(page: str) -> list[str]:
    """Where a page's links lead, as written."""
    return _LINK.findall(prose(page))


def anchors(page: str) -> set[str]:
    """The anchors that a page's headings make."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def first_column(text: str) -> list[str]:
    """The backticked words of the first column of the tables in a text."""
    cells = re.findall(r"^\| ([^|]*) \|", text, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]


def section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one of the same or a higher level."""
    text = PAGES[page]
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found is not None, f"{page} has no heading {heading!r}"
    rest = text[found.end() :]
    following = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest if following is None else rest[: following.start()]
