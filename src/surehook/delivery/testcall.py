"""A test call: one real, signed request to an endpoint, at once, and what came of it.

It leaves through the same transport as every delivery, so the guard judges it in the same way. It is no event:
nothing is written, nothing is retried, the breaker is not asked and does not count it (one that arrived brings its next
probe forward), and a paused endpoint can be tested. The ids in its headers and body are made for the occasion and lead nowhere.
"""

from __future__ import annotations

import asyncio

from surehook.core import envelope, ids, instants, outcome
from surehook.core.model import RETRY, Attempt, Delivery
from surehook.delivery import endpoints
from surehook.delivery.credential import Credential
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.managing import Manager, new_id
from surehook.delivery.plans import Plan
from surehook.delivery.request import header_lines, signer_at
from surehook.ports.transport import Answer, Request

EVENT_TYPE = "surehook.test"
DATA = b'{"message":"a test call from surehook"}'


async def call(manager: Manager, endpoint: bytes) -> Attempt:
    """Send it and wait for the answer, as long as the policy's patient timeout at most. Raises TooManyCalls."""
    await manager.changed()
    route = manager.directory.routes.get(endpoint)
    if route is None:
        raise endpoints.missing()
    place = manager.caller_calls.enter("test", tenant=route.endpoint.tenant, endpoint=endpoint)
    try:
        return await _called(manager, route)
    finally:
        if route.credential is None:
            place.leave()
        else:
            route.credential.when_idle(place.leave)


async def _called(manager: Manager, route: EndpointState) -> Attempt:
    plan = manager.directory.plan(route, EVENT_TYPE)
    now = manager.clock.now()
    delivery = _delivery(manager, route, now)
    request = Request(
        target=route.target,
        headers=header_lines(route, plan, signer_at(route, now), delivery, now=now),
        body=delivery.body,
        timeout_s=plan.policy.timeouts.retry,
        connect_timeout_s=plan.policy.timeouts.connect,
        private=route.private,
        redirects=plan.policy.redirects,
        redirect_style=plan.policy.redirect_style,
        method=route.method,
    )
    answer = await _sent(manager, request, route.credential)
    attempt = _attempt(plan, delivery, answer, started_at=now, now=manager.clock.now())
    if attempt.outcome == "delivered":
        manager.probe_now(route.endpoint.id)
    return attempt


async def _sent(manager: Manager, request: Request, credential: Credential | None) -> Answer:
    done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def answered(answer: Answer) -> None:
        if not done.done():
            done.set_result(answer)

    exchange = manager.tokens.send(request, credential, answered)
    try:
        return await done
    finally:
        if not done.done() or done.cancelled():
            exchange.abort()


def _delivery(manager: Manager, route: EndpointState, now: int) -> Delivery:
    event = new_id(manager, now)
    endpoint = route.endpoint
    body = envelope.render_body(
        id=ids.text(ids.EVENT, event),
        type=EVENT_TYPE,
        timestamp=instants.render(now),
        tenant=endpoint.tenant,
        schema_version="1",
        data=DATA,
    )
    return Delivery(
        id=ids.delivery_id(event, manager.entropy.bits(6)),
        event=event,
        endpoint=endpoint.id,
        tenant=endpoint.tenant,
        type=EVENT_TYPE,
        lane=RETRY,
        attempt=1,
        due_at=now,
        born_at=now,
        body=body,
    )


def _attempt(plan: Plan, delivery: Delivery, answer: Answer, *, started_at: int, now: int) -> Attempt:
    result = outcome.classify(
        policy=plan.policy,
        success=plan.success,
        lane=RETRY,
        probe=True,
        status=answer.status,
        failure=answer.failure,
        headers=answer.headers,
        body=answer.body,
        now=now,
    )
    return Attempt(
        delivery=delivery.id,
        number=1,
        kind="attempt",
        lane=RETRY,
        started_at=started_at,
        outcome=result.name,
        unknown=answer.unknown,
        status=answer.status,
        error=answer.failure,
        address=answer.address,
        dns_us=answer.dns_us,
        connect_us=answer.connect_us,
        tls_us=answer.tls_us,
        first_byte_us=answer.first_byte_us,
        total_us=answer.total_us,
        headers=answer.headers,
        body=answer.body,
        truncated=answer.truncated,
    )
