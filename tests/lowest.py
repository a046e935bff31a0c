"""The lowest versions that pyproject.toml names, as constraints for pip, on stdout: `make lowest` tests with them."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
_NAMED = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([0-9.]+)")


def lowest(project: dict[str, object]) -> list[str]:
    """`name==version` of everything that users get; what only tests need is not in it."""
    table = project["project"]
    assert isinstance(table, dict)
    asked = [
        *table["dependencies"],
        *(each for extra in table["optional-dependencies"].values() for each in extra),
    ]
    found = {}
    for each in asked:
        named = _NAMED.match(each)
        if named is None:
            raise ValueError(f"{each} names no lowest version")
        found[named[1].lower()] = named[2]
    return sorted(f"{name}=={version}" for name, version in found.items())


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest(tomllib.loads(PROJECT.read_text()))) + "\n")
