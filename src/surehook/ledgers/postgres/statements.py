"""Statements of `queries/`, one a file, read once."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_COMMENT = re.compile(r"--[^\n]*")


@cache
def query(name: str) -> str:
    """The text of `queries/NAME.sql` on one line, without comments."""
    text = files(__package__).joinpath("queries", f"{name}.sql").read_text()
    return " ".join(_COMMENT.sub("", text).split())


def read_all() -> None:
    """Read every file now: one that is first needed when no descriptor is left could not be read any more."""
    for file in files(__package__).joinpath("queries").iterdir():
        if file.name.endswith(".sql"):
            query(file.name.removesuffix(".sql"))
