"""What one check of `surehook doctor` found."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Finding(Struct, frozen=True):
    """`state`: ok, warning (works, but not for long or not as meant) or wrong."""

    what: str
    state: Literal["ok", "warning", "wrong"]
    detail: str
    hint: str | None = None
