"""Trouble with the inbox's database: logged once when it begins, once a minute while it lasts, and once when it is over.

Requests and workers meet the same trouble, some of them thousands of times a second; so they share what was logged. It is over
for a kind of work when that work succeeds again: a table that takes no more rows can still be looked at. What comes and
goes is over once a minute. What a person can correct (no tables, a database, user or right that is missing) is an error, and says
what to do; what passes by itself is a warning. Other kinds of failure are logged with their traceback.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Sequence

from surehook.core.errors import Overloaded
from surehook.core.sources.provider import Reply
from surehook.inbox.answers import problem
from surehook.inbox.log_limits import OncePer
from surehook.inbox.safe_log import log
from surehook.ports.inbox import StoreError, StoreUnavailable

AGAIN_S = 60.0  # while it lasts
STORING, PROCESSING = "to store what arrives", "to process"
TELLING, MOVING, LOOKING = (
    "to tell senders",
    "to take over what is in the queue",
    "to see whether anything waits",
)
AWAY_S = (0.2, 10.0)  # first and longest wait of a worker

TABLES = "its tables are missing"
# In the words of SQLite, PostgreSQL, MySQL and MariaDB, and of their drivers.
_DOOR = [
    (r"unable to open database file",
     "its folder is missing, or this user may not write there: create it, or correct the path in the URL"),
    (r"database .* does not exist|unknown database",
     "there is no such database: create it, or correct the URL"),
    (r"access denied for user .* to database",
     "its user has no right on that database, or it is misspelt: GRANT SELECT, INSERT, UPDATE, DELETE ON the database"),
    (r"password authentication failed|role .* does not exist|access denied for user|no password supplied",
     "the URL's user or password is wrong"),
    (r"role .* is not permitted to log in",
     "name a role that may log in as the URL's user, or let this one: ALTER ROLE … LOGIN"),
]  # fmt: skip
_MENDED = [
    *_DOOR,
    (r"no such table|relation .* does not exist|table .* doesn't exist",
     f"{TABLES}: create_tables() makes them, as `surehook inbox upgrade MODULE:INBOX` does; `surehook inbox ddl` prints them"),
    (r"no such column|column .* does not exist|unknown column",
     "its tables are of another version of surehook: `surehook inbox ddl` prints what this one needs"),
    (r"readonly database",
     "this process may not write the file, or files beside it in its folder: allow it both, or correct the path in the URL"),
    (r"read-only transaction",
     "it takes no changes: is it a standby, or is default_transaction_read_only set for the URL's user?"),
    (r"permission denied|command denied",
     "its user needs SELECT, INSERT, UPDATE and DELETE on the tables surehook_inbox_*"),
]  # fmt: skip
# What may also pass by itself.
_ASKED = [
    (r"database is locked|database table is locked",
     "another process has been writing to this file for too long: end what keeps a transaction open there (a shell, a handler), "
     "or use PostgreSQL where several processes write"),
    (r"connection refused|connect call failed|can't connect|could not translate host name|name or service not known",
     "is it running, and are host and port of the URL right?"),
    (r"max_allowed_packet|server has gone away",
     "is it running? It also hangs up on a message that is larger than its max_allowed_packet, which should be twice the largest "
     "body that a source allows"),
]  # fmt: skip


def next_step(text: str) -> str | None:
    """Suggest what to do about a database's error."""
    return _found(_MENDED, text) or _found(_ASKED, text)


def is_connecting(text: str) -> bool:
    """Tell whether the error came before anything was asked for."""
    return _found([*_DOOR, *_ASKED], text) is not None


def cure(error: BaseException) -> str | None:
    """Suggest what to do about it, where only a person can."""
    return _found(_MENDED, str(error))


def _found(words: Sequence[tuple[str, str]], text: str) -> str | None:
    said = text.lower()
    return next((told for pattern, told in words if re.search(pattern, said)), None)


class Trouble:
    """Logs database trouble, by the kind of work that it keeps from going on. `boot` counts seconds."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self._often = OncePer(boot, AGAIN_S)
        self._overs = OncePer(boot, AGAIN_S)
        self._began: dict[str, float] = {}
        self._went_on: set[str] = set()  # work of which it was said: its next failure is news
        self._telling = threading.Lock()

    def met(self, error: Exception, work: str = STORING) -> None:
        """Note that this work has failed."""
        mended = cure(error)
        help = next_step(str(error))
        with self._telling:
            lasts_s = self._boot() - self._began.setdefault(work, self._boot())
            is_time = self._often.may((type(error), help))
            if not is_time and work not in self._went_on:
                return
            self._went_on.discard(work)
        passes = isinstance(error, StoreUnavailable) and mended is None
        log.log(
            logging.WARNING if passes else logging.ERROR,
            "the inbox cannot use its database: %s%s%s",
            error,
            # One that has the diagnosis may have another cure: Django's tables are made otherwise.
            "" if help is None or help.partition(":")[0] in str(error) else f"; {help}",
            f" (for {lasts_s:.0f} s)" if lasts_s >= 1 else "",
            exc_info=None if isinstance(error, StoreError) else error,
        )

    def over(self, work: str = STORING) -> None:
        """Note that this work has succeeded. Logged too often, the line is left for the next time."""
        if work not in self._began:
            return
        with self._telling:
            if work not in self._began or not self._overs.may(work):
                return
            lasted_s = self._boot() - self._began.pop(work)
            self._went_on.add(work)
        log.warning("the inbox can use its database again %s, after %.0f s", work, lasted_s)

    def unstored(self, error: Exception) -> tuple[Reply, str]:
        """Answer a sender when nothing was committed, or nobody knows; with the answer's code."""
        if isinstance(error, Overloaded):
            return problem("overloaded"), "overloaded"
        self.met(error)
        return problem("storage_unavailable"), "storage_unavailable"


class Away:
    """The waits of one worker while its turns fail, each twice as long."""

    def __init__(self, trouble: Trouble, work: str = PROCESSING) -> None:
        self._trouble, self._work = trouble, work
        self._wait = AWAY_S[0]

    def wait_s(self, error: Exception) -> float:
        self._trouble.met(error, self._work)
        wait, self._wait = self._wait, min(self._wait * 2, AWAY_S[1])
        return wait

    def over(self) -> None:
        self._wait = AWAY_S[0]
        self._trouble.over(self._work)
