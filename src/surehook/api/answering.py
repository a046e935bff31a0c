"""Answers as bytes: one encoder, one content type for values and one for problems."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from surehook.api import problems

JSON = "application/json"
_encode = msgspec.json.Encoder().encode


def answer(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON; None is no content."""
    if value is None:
        return Response(status_code=status, headers=headers)
    return Response(_encode(value), status_code=status, headers=headers, media_type=JSON)


def refuse(error: BaseException, headers: dict[str, str] | None = None) -> Response:
    """An error as problem+json."""
    refusal = problems.refusal(error)
    return Response(
        refusal.body(),
        status_code=refusal.status,
        headers={**dict(refusal.headers), **(headers or {})},
        media_type=problems.MEDIA_TYPE,
    )
