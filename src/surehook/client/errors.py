"""Errors between an application and the server.

SurehookError
└── ClientError
    ├── Refused       the server answered, and the answer is no: code, sentence, field, hint, status
    └── Unreachable   no answer: `maybe_done` says whether the request may have taken effect
"""

from __future__ import annotations

from surehook.core.errors import SurehookError


class ClientError(SurehookError):
    """Base of everything a client raises."""


class Refused(ClientError):
    """The server refused. The fields are those of its problem document."""

    def __init__(
        self, status: int, code: str, detail: str, *, field: str | None = None, hint: str | None = None
    ) -> None:
        super().__init__(f"{status} {code}: {detail}" + (f" ({field})" if field else ""))
        self.status = status
        self.code = code
        self.detail = detail
        self.field = field
        self.hint = hint


class Unreachable(ClientError):
    """No answer from `url`. With `maybe_done` the request was sent: only a repeat with the same id or
    idempotency key is safe, and `send` makes one by itself."""

    def __init__(self, url: str, cause: str, *, maybe_done: bool, hint: str | None = None) -> None:
        late = cause.removeprefix("no answer")  # "no answer within 5 s"
        super().__init__(f"no answer from {url}{late}" if late != cause else f"no answer from {url}: {cause}")
        self.url = url
        self.cause = cause
        self.maybe_done = maybe_done
        self.hint = hint
