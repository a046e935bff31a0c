"""All errors that surehook raises on purpose.

    SurehookError
    ├── Problem             the caller's request cannot be done: stable code, sentence, field, hint
    ├── LedgerError
    │   ├── LedgerUnavailable   the ledger cannot answer now (locked, gone, failing disk); try again
    │   │   ├── LedgerFull      the disk is at its floor; nothing was written
    │   │   ├── LedgerBroken    a commit failed in a way that makes the handle untrustworthy; stop
    │   │   └── CommitUnknown   the connection was lost during COMMIT: it may be on disk all the same
    │   └── NodeEvicted          this node was judged dead; forget everything and start as a new one
    ├── Overloaded          a bounded line is full, or too slow; answered 503 with Retry-After
    │   ├── TenantOverloaded    a tenant or a key has filled its part of it; answered 429 with Retry-After
    │   └── TooManyCalls        callers of the API have as many outgoing calls under way as they may; 429 as well
    └── SettingsError       a setting is unusable; the program does not start

The API gets problems as values: `api/problems.py` is the one map from `code` to a status.
"""

from __future__ import annotations

from collections.abc import Iterator


class SurehookError(Exception):
    """Base of everything raised on purpose."""


class Problem(SurehookError):
    """A refusal that a caller can act on.

    code    stable word for machines, snake_case (`unknown_tenant`)
    detail  one sentence for people
    field   path of the value at fault in the request (`schedule.fixed.2`), or None
    hint    what to do next, or None
    status  HTTP status of the answer
    """

    def __init__(
        self, code: str, detail: str, *, field: str | None = None, hint: str | None = None, status: int = 422
    ) -> None:
        super().__init__(f"{code}: {detail}" + (f" ({field})" if field else ""))
        self.code = code
        self.detail = detail
        self.field = field
        self.hint = hint
        self.status = status


class LedgerError(SurehookError):
    """The ledger could not be written or read."""


class LedgerUnavailable(LedgerError):
    """The ledger cannot answer now; nothing was changed; the same call may succeed later."""


class LedgerFull(LedgerUnavailable):
    """The disk is at its floor of free bytes; nothing was written."""


class LedgerBroken(LedgerUnavailable):
    """A commit failed so that the handle must not be trusted again; the process should end."""


class NodeEvicted(LedgerError):
    """Another node judged this one dead and freed its work; it must begin again under a new id.

    `node` is the id that the ledger does not know: a call may be answered when its node has already begun anew.
    """

    def __init__(self, node: bytes) -> None:
        super().__init__(f"node {node.hex()} is evicted or never entered")
        self.node = node


class CommitUnknown(LedgerUnavailable):
    """The connection was lost while committing: the batch may or may not be on disk.

    Callers that must know run the same batch again (accept, record). For all others the ledger is away: rows that such a
    claim leased are found by comparing ledger and memory (delivery/lease_reconciler.py).
    """


class Overloaded(SurehookError):
    """A bounded waiting line is full. `retry_after_s` says when asking again makes sense."""

    code = "overloaded"
    status = 503

    def __init__(self, detail: str, *, hint: str | None = None, retry_after_s: int = 1) -> None:
        super().__init__(detail)
        self.detail = detail
        self.hint = hint
        self.retry_after_s = retry_after_s


class TenantOverloaded(Overloaded):
    """One tenant, or one key, has filled its part of a waiting line; others may still join it."""

    code = "tenant_overloaded"
    status = 429


class TooManyCalls(Overloaded):
    """An endpoint, a tenant or this process has as many outgoing calls under way as callers may start."""

    code = "too_many_calls"
    status = 429


class SettingsError(SurehookError):
    """A setting is unusable. `key` names it, `hint` says what would be accepted."""

    def __init__(self, key: str, detail: str, *, hint: str | None = None) -> None:
        super().__init__(f"{key}: {detail}" + (f"\n  hint: {hint}" if hint else ""))
        self.key = key
        self.detail = detail
        self.hint = hint


def let_go(error: BaseException | None) -> None:
    """Drop the traceback and the causes of an error that has been handled. Its frames hold request bodies, and often the
    error itself: a cycle that only the garbage collector finds, which counts objects and not bytes."""
    while error is not None:
        error.__traceback__ = None
        error.__cause__ = None
        error.__context__, error = None, error.__context__


def said(error: BaseException) -> str:
    """An error's message, or its class name where it has none, like a timeout."""
    return str(error) or type(error).__name__


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Walk from an error to those that it came of, each once: a chain may lead back to itself."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
