"""Answers as bytes: one encoder, one content type for values and one for problems."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from surehook.api import problems

JSON = "application/json"
_encode = msgspec.json.Encoder().encode


def answer(value: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON; None is no content."""
    if value is None:
        return Response(status_code=status, headers=headers)
    return Response(_encode(value), status_code=status, headers=headers, media_type=JSON)


class Refused(Response):
    """An answer that leaves the code of its problem, and what the ledger said, in the request's scope, for whoever counts."""

    code = ""
    of_ledger: str | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[problems.PROBLEM], scope[problems.STATUS] = self.code, self.status_code
        scope[problems.OF_LEDGER] = self.of_ledger
        await super().__call__(scope, receive, send)


def refuse(error: BaseException, headers: dict[str, str] | None = None, *, changes: bool = False) -> Response:
    """An error of a call, which `changes` something, as problem+json."""
    refusal = problems.refusal(error, changes=changes)
    refused = Refused(
        refusal.body(),
        status_code=refusal.status,
        headers={**dict(refusal.headers), **(headers or {})},
        media_type=problems.MEDIA_TYPE,
    )
    refused.code = refusal.shape.code
    refused.of_ledger = problems.of_ledger(error)
    return refused
