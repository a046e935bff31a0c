"""OAuth2 tokens: fetched when one is needed, kept while they last, put on requests as they leave.

`Tokens.send` is `Transport.send` for endpoints that want a token, and keeps its contract: `done` is called exactly
once, never from inside `send`, and within the request's own time, which the wait for a token is part of.

One `Credential` stands for one credential of one tenant, however many endpoints have it. While its token is being
fetched, `is_busy` keeps its endpoints from starting anything (delivery/endpoint_state.py, `has_slot`): the one delivery that
needed the token holds a slot, all others wait in line without one. So a token server that hangs costs a lane one
slot for each credential, not one for each delivery, and how many are fetched at once is bounded
(`delivery/fetches.py`). The fetch has a deadline of its own and outlives those who wait.

What a failed fetch said holds for a moment (`REST_S`) for whoever asks next: the line that formed behind it moves on
with the same answer, and the token server is not asked once for each of them.

A 401 from the endpoint throws the token away, once: if the next one is not taken either, the endpoint does not like
this client, and new tokens would be fetched for every attempt for ever. Such a token is kept for `TRIAL_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast
from weakref import WeakKeyDictionary

from surehook.core import authentication, oauth2, redact
from surehook.delivery.credential import AccessToken, Credential
from surehook.delivery.directory import Directory
from surehook.delivery.dispatch import Dispatch
from surehook.delivery.fetches import Fetches
from surehook.delivery.loops import Loops
from surehook.ports.clock import Clock
from surehook.ports.telemetry import Telemetry
from surehook.ports.transport import Answer, Exchange, Failure, Request, Transport

FETCH_S = 10.0  # one fetch, all of it; token servers answer in tenths of a second
FETCH_CONNECT_S = 5.0
REST_S = 1.0  # a failed fetch speaks for those who ask within this time
WAITING = 100  # requests that wait for one token: probes and test calls, since deliveries stay in line
KEPT = 10_000  # tokens in memory, of 4 KiB at most: 40 MiB; the one fetched longest ago makes room
LEAST_S = 0.05  # with less time left a request is not begun

Done = Callable[[Answer], None]


class TokenRequest:
    """One request on its way: waiting for its token, then under way. ports.transport.Exchange."""

    __slots__ = (
        "_began",
        "_credential",
        "_done",
        "_exchange",
        "_request",
        "_timer",
        "_token",
        "_tokens",
        "_waited_us",
    )

    def __init__(self, tokens: Tokens, credential: Credential, request: Request, done: Done) -> None:
        self._tokens = tokens
        self._credential = credential
        self._request = request
        self._done: Done | None = done
        self._began = tokens.clock.boot()
        self._token: AccessToken | None = None
        self._exchange: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._waited_us = 0

    def wait(self) -> None:
        """Stand in line until the token is there, or the request's own time is over."""
        self._credential.waiting[self] = None
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._request.timeout_s, self._tokens.heed, self.fail, "token_timeout")

    def go(self, token: AccessToken) -> None:
        """Send the request with its token."""
        self._token = token
        self._request.add_private(token.line)
        self._exchange = self._tokens.transport.send(self._request, self)

    def go_on(self, token: AccessToken) -> None:
        """The token came: send the request in what is left of its time."""
        waited_s = self._leave()
        if self._request.timeout_s - waited_s < LEAST_S:
            self.fail("token_timeout")
            return
        self._waited_us = int(waited_s * 1e6)
        self._request.shorten(waited_s)
        self.go(token)

    def __call__(self, answer: Answer) -> None:
        """The endpoint's answer."""
        self._tokens.heed(self._answered, answer)

    def _answered(self, answer: Answer) -> None:
        assert self._token is not None
        answer.total_us += self._waited_us
        # A hop to another host went without the token: its word is not about it.
        if answer.status is not None and answer.failure is None and not answer.redirected:
            self._credential.answered(self._token, unauthorized=answer.status == 401)
        self._finish(answer)

    def fail(self, failure: Failure) -> None:
        """No token: the request is over before it was sent."""
        waited_s = self._leave()
        self._finish(Answer(failure=failure, total_us=int(waited_s * 1e6)))

    def fail_soon(self, failure: Failure) -> None:
        asyncio.get_running_loop().call_soon(self._tokens.heed, self.fail, failure)

    def abort(self) -> None:
        if self._exchange is not None:
            self._exchange.abort()
        else:
            self._leave()
            self.fail_soon("aborted")

    def _leave(self) -> float:
        """Out of the line; how many seconds that took."""
        self._tokens.left(self._credential, self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return self._tokens.clock.boot() - self._began

    def _finish(self, answer: Answer) -> None:
        done, self._done = self._done, None
        if done is not None:
            done(answer)


class Tokens:
    """Sends requests with tokens. Endpoints whose token has come, or will not come, may start deliveries again."""

    def __init__(
        self,
        *,
        transport: Transport,
        clock: Clock,
        telemetry: Telemetry,
        loops: Loops,
        directory: Directory,
        dispatch: Dispatch,
    ) -> None:
        self._loops = loops
        self._directory = directory
        self._dispatch = dispatch
        self.transport = transport
        self.clock = clock
        self.kept_most = KEPT
        self._telemetry = telemetry
        self._fetches = Fetches(self._fetch)
        # those with a token, oldest first
        self._kept: WeakKeyDictionary[Credential, None] = WeakKeyDictionary()

    def send(self, request: Request, credential: Credential | None, done: Done) -> Exchange:
        """Send `request`, with a token where the endpoint has a credential. `request` is changed and must not be used again."""
        if credential is None:
            return self.transport.send(request, done)
        token_request = TokenRequest(self, credential, request, done)
        now = self.clock.boot()
        token = credential.usable(now)
        if token is not None:
            token_request.go(token)
        elif not credential.is_busy and now < credential.rests_until:
            token_request.fail_soon(credential.failure)
        elif len(credential.waiting) >= WAITING:
            token_request.fail_soon("no_resources")
        else:
            token_request.wait()
            if not credential.is_busy:
                self._fetches.ask(credential)
                credential.is_busy = True
        return token_request

    def heed(self, step: Callable[..., None], *given: object) -> None:
        """Do what the transport or the event loop calls for: they would log what it raises, and who waits wait for ever."""
        try:
            step(*given)
        except Exception as error:
            self._loops.defect("tokens", error)

    def left(self, credential: Credential, token_request: TokenRequest) -> None:
        """A request waits no longer. What nobody waits for is not fetched; who needs it next asks anew."""
        credential.waiting.pop(token_request, None)
        if credential.is_busy and not credential.waiting and self._fetches.drop(credential):
            self._idle(credential)
            self._let_start(credential)

    def _fetch(self, credential: Credential) -> None:
        began = self.clock.boot()
        fields, form = authentication.token_request(credential.client)
        request = Request(
            target=self.transport.stored(credential.client.token_url, tenant=credential.tenant),
            headers="".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode(),
            body=form,
            timeout_s=FETCH_S,
            connect_timeout_s=FETCH_CONNECT_S,
        )
        try:
            self.transport.send(request, lambda answer: self.heed(self._fetched, credential, began, answer))
        except BaseException:  # a defect in sending cannot leave the line closed
            credential.is_busy = False
            raise

    def _fetched(self, credential: Credential, began: float, answer: Answer) -> None:
        """A fetch ended: everybody who waits goes on with the token, or ends with what is wrong."""
        found = oauth2.read(
            status=answer.status, failure=answer.failure, body=answer.body, truncated=answer.truncated
        )
        self._fetches.over(credential)
        credential.is_failing = not isinstance(found, oauth2.Issued)
        self._idle(credential)
        waiting = list(credential.waiting)
        if isinstance(found, oauth2.Issued):
            token = AccessToken(found.token, since=began, until=began + found.life_s)
            self._keep(credential, token)
            for token_request in waiting:
                token_request.go_on(token)
        else:
            credential.failure = cast(Failure, found)
            credential.rests_until = self.clock.boot() + REST_S
            if found != "aborted":
                self._tell(credential, answer)
            for token_request in waiting:
                token_request.fail(credential.failure)
        self._let_start(credential)
        self._fetches.begin_next()

    def _let_start(self, credential: Credential) -> None:
        """Nobody stands in the way of its endpoints any more."""
        for route in self._directory.with_credential(credential):
            self._dispatch.on_token(route)

    def _idle(self, credential: Credential) -> None:
        credential.is_busy = False
        idle, credential.idle = credential.idle, []
        for told in idle:
            told()

    def _keep(self, credential: Credential, token: AccessToken) -> None:
        self._kept.pop(credential, None)
        self._kept[credential] = None
        credential.token = token
        if len(self._kept) > self.kept_most:
            oldest = next(iter(self._kept))
            oldest.token = None
            del self._kept[oldest]

    def _tell(self, credential: Credential, answer: Answer) -> None:
        """An operator sees the exact cause; a tenant sees the failure's name and hint."""
        self._telemetry.fact(
            "token.failed",
            tenant=credential.tenant,
            token_url=redact.url(credential.client.token_url),
            failure=credential.failure,
            cause=answer.failure,
            status=answer.status,
            error=oauth2.error_word(answer.body),
        )
