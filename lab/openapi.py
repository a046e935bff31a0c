"""`python -m lab openapi`: writes the OpenAPI document to docs/openapi.json, from which clients in other languages are made."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from surehook.api import openapi
from surehook.cli.output import line

PLACE = Path(__file__).parents[1] / "docs" / "openapi.json"


def published() -> bytes:
    """The document as it stands in the repository: a change shows as lines."""
    return msgspec.json.format(openapi.document_bytes(), indent=1) + b"\n"


def main(words: Sequence[str]) -> int:
    argparse.ArgumentParser(prog="python -m lab openapi", description=__doc__).parse_args(words)
    PLACE.write_bytes(published())
    line(f"{PLACE}: written")
    return 0
