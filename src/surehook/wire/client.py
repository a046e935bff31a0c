"""The client: ports.transport.Transport on our own connections.

`send` has two ways. The quick one takes an idle connection to an address judged under today's rules, writes
once and returns: no task, no future, no timer. The other resolves, judges and dials in a task, under one
deadline, and then goes on like the first. What comes back ends in `answered`, which either follows a
redirect the request allows, as another hop under the same deadline, or hands the answer over.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol
from weakref import WeakValueDictionary

from surehook.core.errors import Problem
from surehook.core.model import EndpointTls
from surehook.core.url import NetworkPolicy, Url
from surehook.ports.resolver import Resolver
from surehook.ports.transport import Answer, Request
from surehook.wire import guard, material, redirect
from surehook.wire.connection import Connection
from surehook.wire.dial import Dialer, SystemDialer
from surehook.wire.exchange import Origin, WireCall, WireTarget
from surehook.wire.opening import Opener
from surehook.wire.settings import WireSettings
from surehook.wire.shared import SharedState

CHECK_S = 5.0  # a registration waits this long for DNS, then lets the name pass


class Boot(Protocol):
    """ports.clock.Clock, as far as it is needed here."""

    def boot(self) -> float: ...


class WireClient:
    """Made without a loop; belongs to the loop it is first used on.

    clock       measures deadlines and phases
    resolver    names to addresses
    dialer      the seam to the network; None: the system's
    settings    rules and bounds
    context     TLS for endpoints that have none of their own; None: the system's authorities and `settings.ca_file`
    connection  the class of connections

    Raises SettingsError where a setting is unusable.
    """

    def __init__(
        self,
        *,
        clock: Boot,
        resolver: Resolver,
        dialer: Dialer | None = None,
        settings: WireSettings | None = None,
        context: ssl.SSLContext | None = None,
        connection: type[Connection] = Connection,
    ) -> None:
        settings = settings or WireSettings()
        self.boot = clock.boot
        self.shared = SharedState(settings, clock.boot, context)
        self._guard = guard.Guard(settings)
        self._pool = self.shared.pool
        self._resolver = resolver
        self._origins: WeakValueDictionary[tuple[object, ...], Origin] = WeakValueDictionary()
        self._opener = Opener(
            self.shared, self._guard, resolver, dialer or SystemDialer(), connection=connection
        )
        self._calls: set[WireCall] = set()  # on the slow way; those on connections are found through the pool
        self._is_closed = False

    # -- targets ----------------------------------------------------------------------------------------

    def target(self, url: str, *, tenant: str, tls: EndpointTls | None = None) -> WireTarget:
        return self._target(
            self._guard.read(url, self._guard.policy_of(tenant)), tenant, material.own(tls, tenant)
        )

    def stored(self, url: str, *, tenant: str, tls: EndpointTls | None = None) -> WireTarget:
        try:
            return self.target(url, tenant=tenant, tls=tls)
        except Problem as problem:
            return WireTarget(url, tenant, None, None, guard.failure_of(problem))

    async def check(self, url: str, *, tenant: str) -> None:
        try:
            async with asyncio.timeout(CHECK_S):
                await self._guard.check(url, self._guard.policy_of(tenant), self._resolver)
        except TimeoutError:
            return

    def check_tls(self, tls: EndpointTls, *, url: str, now: int) -> None:
        material.check(tls, url=url, now=now)

    def _target(self, url: Url, tenant: str, own: material.Own | None) -> WireTarget:
        policy = self._guard.policy_of(tenant)
        if url.scheme != "https":
            own = None
        key = (*url.origin, id(policy), None if own is None else own.fingerprint)
        origin = self._origins.get(key)
        if origin is None:
            origin = self._origins[key] = Origin(url, policy, self._guard.known(url, policy), own, key)
        return WireTarget(url.text, tenant, url, origin, None)

    # -- sending ----------------------------------------------------------------------------------------

    def send(self, request: Request, done: Callable[[Answer], None]) -> WireCall:
        target = request.target
        assert isinstance(target, WireTarget), "targets are made by this client"
        call = WireCall(self, request, done, target, self.boot())
        self._go(call)
        return call

    def _go(self, call: WireCall) -> None:
        """Send the hop in hand: at once where a judged idle connection exists."""
        origin = call.target.origin
        if origin is None:
            call.fail_soon(call.target.refusal or "url_forbidden")
            return
        if self._is_closed:
            call.fail_soon("aborted")
            return
        if origin.idle and (origin.is_known or self._is_still(origin)):
            connection = self._pool.take(origin)
            if connection is not None:
                connection.carry(call)
                return
        self._calls.add(call)
        call.task = asyncio.get_running_loop().create_task(self._reach(call, origin))

    def _is_still(self, origin: Origin) -> bool:
        """True if the addresses judged last are those of the DNS answer that is valid now."""
        resolved = self._resolver.cached(origin.url.host)
        return resolved is not None and resolved is origin.resolved

    async def _reach(self, call: WireCall, origin: Origin) -> None:
        connection = None
        try:
            connection = await self._opener.open(call, origin)
        except Exception as error:
            # A defect of ours or of a foreign resolver: the delivery must not hang on it.
            asyncio.get_running_loop().call_exception_handler(
                {"message": "opening failed", "exception": error}
            )
            call.fail("no_resources")
        finally:
            self._calls.discard(call)
            call.task = None
        if connection is None:
            return
        if call.is_over:
            self._pool.put(connection, self.boot())
        else:
            connection.carry(call)

    def answered(self, call: WireCall, answer: Answer, head: bytes) -> None:
        """A complete answer came for the hop in hand."""
        status = answer.status
        if call.request.redirects and status is not None and 300 <= status < 400:
            self._redirected(call, answer, status, head)
        else:
            call.finish(answer)

    def _redirected(self, call: WireCall, answer: Answer, status: int, head: bytes) -> None:
        request, base = call.request, call.target.read
        assert base is not None
        if not redirect.asks(status, head, request.redirect_style):
            call.finish(answer)
            return
        if call.hops >= request.redirects:
            answer.failure = "redirect_limit"
            call.finish(answer)
            return
        try:
            following = self._following(base, head, self._guard.policy_of(call.target.tenant))
        except redirect.RedirectRefused:
            answer.failure = "redirect_forbidden"
            call.finish(answer)
            return
        except Problem as problem:
            is_address = guard.failure_of(problem) == "address_forbidden"
            answer.failure = "address_forbidden" if is_address else "redirect_forbidden"
            call.finish(answer)
            return
        if not redirect.same_origin(base, following):
            call.headers = request.headers  # what is private does not come back on a later hop
        call.target = self._target(following, call.target.tenant, _own_at(call, following))
        call.hops += 1
        call.connection = None
        self._go(call)

    def _following(self, base: Url, head: bytes, policy: NetworkPolicy) -> Url:
        following = self._guard.read(redirect.where(base, head), policy)
        if not redirect.may_go(base, following):
            raise redirect.RedirectRefused
        return following

    # -- the end ----------------------------------------------------------------------------------------

    async def close(self) -> None:
        self._is_closed = True
        tasks = [call.task for call in self._calls if call.task is not None]
        for call in list(self._calls):
            call.abort()
        for connection in list(self._pool.open):
            if connection.call is not None:
                connection.fail("aborted", self.boot())
        self._pool.close()
        self.shared.wheel.close()
        if tasks:
            await asyncio.wait(tasks)
        await asyncio.sleep(0)  # transports say goodbye in the next turn
        await self._resolver.close()


def _own_at(call: WireCall, following: Url) -> material.Own | None:
    """The endpoint's own TLS goes along to its own origin alone: what it trusts and shows was meant for that."""
    first = call.request.target
    assert isinstance(first, WireTarget)
    assert first.read is not None
    assert first.origin is not None
    return first.origin.own if redirect.same_origin(first.read, following) else None
