"""What the docs must not promise: an endpoint cannot be given an Ed25519 key, so nothing of ours is signed with one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
ASYMMETRIC = re.compile(r"ed25519|\bv1a\b|\bwhpk_|\bwhsk_|asymmetric", re.IGNORECASE)
# What senders of other firms sign with, and which vectors our verifier is tried with.
FOREIGN = ("| `standard`, `svix` |", "| `standard` |")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_says_that_we_sign_with_a_key_that_cannot_be_given(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if ASYMMETRIC.search(line) and not line.startswith(FOREIGN)] == []
