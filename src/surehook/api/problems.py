"""The one error map: errors become problem+json (RFC 9457) and answers.

Every refusal has a stable `code` of the table in `codes.py`. `type` is `/problems/CODE`, which every server serves as a
page, so it works without the outside world.

Rooms below raise `Problem` (the caller's fault, with field and hint) or an error of the ledger (ours and temporary;
outages are reported elsewhere). Anything else is a defect: it is logged in full and shown as `internal`.
"""

from __future__ import annotations

import logging

import msgspec
from msgspec import Struct
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from surehook.api.codes import CODES
from surehook.core.errors import (
    CommitUnknown,
    LedgerBroken,
    LedgerError,
    LedgerFull,
    Overloaded,
    Problem,
    SurehookError,
    let_go,
)

log = logging.getLogger("surehook.api")

TYPE_PREFIX = "/problems/"
MEDIA_TYPE = "application/problem+json"
# Keys in a request's scope, for the counters: the code of its refusal, and the status of its answer (always set for
# publishes, where reading it off the messages would cost more than counting).
PROBLEM, STATUS = "surehook.problem", "surehook.status"
# … and the error of the ledger, where it could not answer.
OF_LEDGER = "surehook.ledger"
# Troubles of the ledger are short (a lock, a takeover); a full disk lasts longer.
RETRY_AFTER_S = 1
RETRY_AFTER_OF = {"disk_full": 30}


class ProblemOut(Struct, frozen=True):
    """problem+json, in the order of the contract. Absent values are null."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    field: str | None
    hint: str | None


class Refusal(Struct, frozen=True):
    """A problem ready to leave: status, extra headers, and the value to encode."""

    status: int
    headers: tuple[tuple[str, str], ...]
    shape: ProblemOut

    def body(self) -> bytes:
        return msgspec.json.encode(self.shape)

    def rendered(self) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Status, headers and body of the whole answer."""
        content = self.body()
        headers = [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", b"%d" % len(content))]
        headers += [(name.encode(), value.encode()) for name, value in self.headers]
        return self.status, headers, content


def refusal(error: BaseException, *, changes: bool = False) -> Refusal:
    """The refusal of a call, which `changes` something, for an error in it. An error that is not ours is logged here, whole and
    once; one of ours holds nothing of the request from here on."""
    if isinstance(error, SurehookError):
        let_go(error)
    if isinstance(error, Problem):
        return _refusal(error.code, error.detail, field=error.field, hint=error.hint, status=error.status)
    if isinstance(error, Overloaded):
        return _refusal(error.code, error.detail, hint=error.hint, retry_after_s=error.retry_after_s)
    if isinstance(error, LedgerFull):
        hint = "free some space on the ledger's disk, then ask again"
        return _refusal("disk_full", "there is too little free disk", hint=hint)
    if changes and isinstance(error, CommitUnknown | LedgerBroken):
        detail = "the ledger went away while this was written: nobody knows whether it was done"
        return _refusal("outcome_unknown", detail, hint="look whether it was done before you ask again")
    if isinstance(error, LedgerError):
        hint = (
            "ask again; where something was to be made, look first whether it was" if changes else "ask again"
        )
        return _refusal("ledger_unavailable", "the ledger is away", hint=hint)
    log.error("unexpected %s in a request", type(error).__name__, exc_info=error)
    return _refusal("internal", "something unexpected happened; the log of the server says what")


def rendered(error: Exception) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """An error as status, headers and body."""
    return refusal(error).rendered()


class ProblemResponse(Response):
    """A refusal that leaves its code and the error of the ledger in the request's scope, for the counters."""

    def __init__(self, error: BaseException, refusal: Refusal, headers: dict[str, str]) -> None:
        super().__init__(
            refusal.body(),
            status_code=refusal.status,
            headers={**dict(refusal.headers), **headers},
            media_type=MEDIA_TYPE,
        )
        self._code = refusal.shape.code
        self._of_ledger = of_ledger(error)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[PROBLEM], scope[STATUS], scope[OF_LEDGER] = self._code, self.status_code, self._of_ledger
        await super().__call__(scope, receive, send)


def refuse(error: BaseException, headers: dict[str, str] | None = None, *, changes: bool = False) -> Response:
    """An error of a call, which `changes` something, as problem+json."""
    return ProblemResponse(error, refusal(error, changes=changes), headers or {})


def of_ledger(error: BaseException) -> str | None:
    """The error of a ledger that cannot answer; a full disk is reported by those who watch it."""
    return str(error) if isinstance(error, LedgerError) and not isinstance(error, LedgerFull) else None


def shape(problem: Problem) -> ProblemOut:
    """A problem as a value, as it stands in the answer to a batch."""
    return refusal(problem).shape


def _refusal(
    code: str,
    detail: str,
    *,
    field: str | None = None,
    hint: str | None = None,
    status: int = 422,
    retry_after_s: int | None = None,
) -> Refusal:
    known = CODES.get(code)
    status, title = known or (status, code.replace("_", " ").capitalize())
    headers: tuple[tuple[str, str], ...] = ()
    if status in (429, 503):
        headers = (("retry-after", str(retry_after_s or RETRY_AFTER_OF.get(code, RETRY_AFTER_S))),)
    if status == 401:
        headers = (("www-authenticate", "Bearer"),)
    return Refusal(status, headers, ProblemOut(TYPE_PREFIX + code, title, status, code, detail, field, hint))
