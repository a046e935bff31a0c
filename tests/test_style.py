"""House style that no linter knows, and the debts that are left of it.

Each rule is a function from the tree of files to what breaks it. What broke a rule when the rule came stands in
`style_debts.json` and may only shrink: a new offence fails, and so does a debt that is paid and still listed.
`python -m tests.test_style` writes the list anew; it never adds to it.
"""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.test_tidy import PRODUCT, PYTHON, name_of, read

DEBTS = Path(__file__).with_name("style_debts.json")

Counts = dict[str, int]

# The package alone: what proves it does not ship.
PACKAGE = [path for path in PRODUCT if name_of(path).startswith("src/")]
# Names that a framework looks for.
SHARED_NAMES = {"Command", "Migration"}
DIRECTIVE = re.compile(r"#\s*(?:fmt:|noqa|type:|ruff:)")
QUESTION = re.compile(r"(?:What|Whether|How|Where)\b")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(read(path))


def double_names() -> Counts:
    """Public class names that more than one class has, with how many have each."""
    names = Counter(
        node.name
        for path in PACKAGE
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return {name: count for name, count in names.items() if count > 1 and name not in SHARED_NAMES}


def question_docstrings() -> Counts:
    """Docstrings that begin with What, Whether, How or Where, by file."""
    return by_file(PACKAGE, lambda path: sum(bool(QUESTION.match(text)) for text in docstrings(tree(path))))


def docstrings(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def breaking_comments() -> Counts:
    """Trailing comments for whose sake an expression stands on several lines, by file."""
    return by_file(PYTHON, lambda path: len(breaking(read(path))))


def breaking(text: str) -> list[int]:
    """Lines with a comment behind a closing bracket that begins the line, or behind the only line in a bracket."""
    lines = text.splitlines()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    places = [
        token.start
        for token in tokens
        if token.type == tokenize.COMMENT and not DIRECTIVE.search(token.string)
    ]
    return [
        row
        for row, column in places
        if (code := lines[row - 1][:column].strip())
        and (code[0] in ")]}" or (_opens(lines[row - 2]) and code[-1] != "," and _closes(lines[row])))
    ]


def _opens(line: str) -> bool:
    return line.endswith(("(", "[", "{"))


def _closes(line: str) -> bool:
    return line.lstrip().startswith((")", "]", "}"))


def foreign_assignments() -> Counts:
    """Assignments to an attribute of a part (`self.part.attribute = …`), by file."""
    return by_file(PACKAGE, lambda path: sum(1 for _ in assignments_to_parts(tree(path))))


def assignments_to_parts(module: ast.Module) -> Iterator[ast.Attribute]:
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            part = node.value
            if (
                isinstance(part, ast.Attribute)
                and isinstance(part.value, ast.Name)
                and part.value.id == "self"
            ):
                yield node


def import_circles() -> Counts:
    """Modules of the package that import each other, directly or through others, by their names with how many they are.

    Every import counts: for type checkers alone, and within a function. A circle hidden so is a circle.
    """
    modules = {_module(path): path for path in PACKAGE}
    imports = {name: homes(imported(tree(path)), modules) - {name} for name, path in modules.items()}
    return {", ".join(circle): len(circle) for circle in circles(imports)}


def _module(path: Path) -> str:
    return name_of(path).removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imported(module: ast.Module) -> set[str]:
    """The dotted names that a module imports, within functions and for type checkers too."""
    found: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.update(f"{node.module}.{one.name}" for one in node.names)
    return found


def homes(names: set[str], modules: Collection[str]) -> set[str]:
    """The modules that these names are, or stand in."""
    return {
        home
        for name in names
        for home in [name if name in modules else name.rpartition(".")[0]]
        if home in modules
    }


def circles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules each of which reaches the others."""
    reached = {name: _reached(name, imports) for name in imports}
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in imports
        if name in reached[name]
    }
    return [list(group) for group in sorted(groups)]


def _reached(name: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = [*imports[name]]
    while ahead:
        one = ahead.pop()
        if one not in found:
            found.add(one)
            ahead.extend(imports[one])
    return found


def uses_of_any() -> Counts:
    """Uses of `Any` in the whole product."""
    nodes = (node for path in PACKAGE for node in ast.walk(tree(path)))
    return {"Any": sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes)}


RULES: dict[str, Callable[[], Counts]] = {
    rule.__name__: rule
    for rule in (
        double_names,
        question_docstrings,
        breaking_comments,
        foreign_assignments,
        import_circles,
        uses_of_any,
    )
}


def by_file(paths: list[Path], count: Callable[[Path], int]) -> Counts:
    counts = {name_of(path): count(path) for path in paths}
    return {name: number for name, number in counts.items() if number}


def debts() -> dict[str, Counts]:
    return defaultdict(dict, json.loads(DEBTS.read_text(encoding="utf-8")))


@pytest.mark.parametrize("rule", RULES)
def test_nothing_breaks_a_rule_beyond_its_debts(rule: str) -> None:
    allowed = debts()[rule]
    assert {name: count for name, count in RULES[rule]().items() if count > allowed.get(name, 0)} == {}


@pytest.mark.parametrize("rule", RULES)
def test_a_debt_that_is_paid_is_struck_off(rule: str) -> None:
    found = RULES[rule]()
    paid = {name: count for name, count in debts()[rule].items() if count > found.get(name, 0)}
    assert paid == {}, "python -m tests.test_style"


def test_the_rules_see_what_they_are_for() -> None:
    text = (
        "x = [\n    1\n]  # one\ny = {\n}  # fmt: skip\nz = ')'  # a bracket\n"
        "u = (\n    1  # one\n)\nv = [\n    1,  # one\n]\n"
    )
    assert breaking(text) == [3, 8]
    assigned = assignments_to_parts(
        ast.parse("self.a = 1\nself.b.c, d = 1, 2\nself.e.f += 1\ng.h = self.i.j\n")
    )
    assert sorted(node.attr for node in assigned) == ["c", "f"]
    hidden = "from a import b\ndef f():\n    import c.d\nif TYPE_CHECKING:\n    from a.b import E\n"
    modules = ("a", "a.b", "c.d")
    assert homes(imported(ast.parse(hidden)), modules) == {"a.b", "c.d"}
    assert homes(imported(ast.parse("from a import e, b")), modules) == {"a", "a.b"}
    around = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"f"}, "f": {"e"}, "g": set[str]()}
    assert circles(around) == [["a", "b", "c"], ["e", "f"]]
    assert list(map(bool, map(QUESTION.match, ("How it is", "However", "Where", "Now how")))) == [
        True,
        False,
        True,
        False,
    ]


def strike_off() -> None:
    """Write the debts that are left: each is what was found, and no more than was allowed."""
    allowed = debts()
    left = {
        rule: {name: min(count, allowed[rule].get(name, 0)) for name, count in sorted(find().items())}
        for rule, find in RULES.items()
    }
    left = {rule: {name: count for name, count in counts.items() if count} for rule, counts in left.items()}
    DEBTS.write_text(json.dumps(left, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    strike_off()
