"""A credential of a tenant that tokens are got by, and how it fares."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from surehook.core.authentication import ClientCredentials
from surehook.ports.transport import Failure

TRIAL_S = 60.0  # how long a token is kept that the endpoint has never taken


class AccessToken:
    """A token in use. `line` is its header line; times are seconds of the boot clock."""

    __slots__ = ("is_taken", "line", "since", "until")

    def __init__(self, text: str, *, since: float, until: float) -> None:
        self.line = f"authorization: Bearer {text}\r\n".encode()
        self.since = since
        self.until = until
        self.is_taken = False  # an endpoint has answered it with something other than 401


class Waits(Protocol):
    """A request that waits for a token."""

    def go_on(self, token: AccessToken) -> None: ...
    def fail(self, failure: Failure) -> None: ...


class Credential:
    """One credential of one tenant, and how it fares. Made by the directory, kept as long as an endpoint has it."""

    __slots__ = (
        "__weakref__", "client", "failure", "idle", "is_busy", "is_failing", "on_trial", "rests_until", "tenant", "token",
        "waiting",
    )  # fmt: skip

    def __init__(self, tenant: str, client: ClientCredentials) -> None:
        self.tenant = tenant
        self.client = client
        self.token: AccessToken | None = None
        self.is_busy = False  # a fetch is under way, or stands in line
        self.idle: list[Callable[[], None]] = []  # told when it is over
        self.waiting: dict[Waits, None] = {}  # an ordered set
        self.failure: Failure = "token_unreachable"  # what the last fetch failed with
        self.is_failing = False  # the last fetch brought no token
        self.rests_until = 0.0
        self.on_trial = False  # the last token was thrown away: the next one must first be taken

    def usable(self, now: float) -> AccessToken | None:
        token = self.token
        return token if token is not None and now < token.until else None

    def when_idle(self, told: Callable[[], None]) -> None:
        """Call `told` when no fetch is under way: now, or at the end of this one."""
        if self.is_busy:
            self.idle.append(told)
        else:
            told()

    def answered(self, token: AccessToken, *, unauthorized: bool) -> None:
        """An endpoint answered a request that had this token."""
        if not unauthorized:
            token.is_taken = True
            self.on_trial = False
        elif token is self.token:
            if token.is_taken or not self.on_trial:
                self.token, self.on_trial = None, True
            else:
                token.until = min(token.until, token.since + TRIAL_S)
