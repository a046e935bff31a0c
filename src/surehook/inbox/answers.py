"""Answers to senders: the source's own words for success, and problem+json for everything else.

Every problem tells machines whether the same bytes may be taken later (`retryable`), so that a sender neither gives up what
would arrive nor repeats what never will. Refusals of one status look the same outside; the reason is in the counters.

    400 no_body              terminal  the body is empty
    401 bad_signature        terminal  not believed, for whatever reason
    403 caller_refused       retryable the caller is outside the source's networks, which are ours to correct
    404 unknown_source       retryable no such source is mounted here, perhaps not yet
    405 method_not_allowed   terminal
    408 body_too_slow        retryable
    409 event_conflict       terminal  the id was used for another body
    413 too_large            terminal
    415 unsupported_encoding terminal  the signature covers bytes as sent, so they are read as sent
    422 malformed            terminal
    422 unknown_schema       terminal  a schema version that is not understood here
    431 headers_too_large    terminal
    500 not_set_up           retryable the source is set up wrongly, or a defect
    503 overloaded           retryable too much is waiting to be stored
    503 storage_unavailable  retryable the database cannot answer
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from surehook.core.sources.provider import Reply
from surehook.core.verification import VerifyError

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 5  # a database that restarts or fails over is back in seconds
RETRY_AFTER_OVERLOADED_S = 1  # a full line is emptied in less
RETRY_AFTER_SETUP_S = 300  # somebody has to mend it; a surehook sender asks no more often either


class _Problem(Struct, frozen=True):
    type: str
    title: str
    status: int
    code: str
    detail: str
    retryable: bool


# code → (status, title, retryable, Retry-After in seconds or None)
CODES: dict[str, tuple[int, str, bool, int | None]] = {
    "no_body": (400, "The body is empty", False, None),
    "bad_signature": (401, "The signature could not be verified", False, None),
    "caller_refused": (403, "Calls from there are not taken", True, RETRY_AFTER_SETUP_S),
    "unknown_source": (404, "There is no such source", True, RETRY_AFTER_SETUP_S),
    "method_not_allowed": (405, "This address has no such method", False, None),
    "body_too_slow": (408, "The body did not come in time", True, RETRY_AFTER_OVERLOADED_S),
    "event_conflict": (409, "The event id was used for another body", False, None),
    "too_large": (413, "The body is too large", False, None),
    "unsupported_encoding": (415, "Bodies are read uncompressed", False, None),
    "malformed": (422, "The message cannot be read", False, None),
    "unknown_schema": (422, "The schema version is not known", False, None),
    "headers_too_large": (431, "The headers are too large", False, None),
    "not_set_up": (500, "The receiver is not set up", True, RETRY_AFTER_SETUP_S),
    "overloaded": (503, "Too much is waiting", True, RETRY_AFTER_OVERLOADED_S),
    "storage_unavailable": (503, "The event cannot be stored now", True, RETRY_AFTER_S),
}


def problem(code: str, detail: str | None = None, *, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """A refusal ready to leave. `detail` must not tell a stranger anything; None repeats the title."""
    status, title, retryable, after = CODES[code]
    body = _Problem("about:blank", title, status, code, detail or title, retryable)
    wait = () if after is None else (("retry-after", str(after)),)
    return Reply(status, msgspec.json.encode(body), (("content-type", MEDIA_TYPE), *wait, *headers))


def refused(error: VerifyError) -> Reply:
    """The public face of a message that was not taken."""
    code = error.public_code if error.public_code in CODES else "not_set_up"
    return problem(code)
