"""Header lines of one attempt around the stored body (docs/delivery-contract.md, "The request")."""

from __future__ import annotations

from msgspec import json

from surehook.core import ids, redact
from surehook.core.model import Delivery
from surehook.core.signature import Signer
from surehook.delivery.endpoint_state import NEVER, EndpointState
from surehook.delivery.plans import Plan
from surehook.ports.transport import Request

# Every stored body begins with its event's id (core/envelope.py), so nothing has to be spelled again.
ID_AT = slice(len('{"id":"'), len('{"id":"') + len(ids.EVENT) + 1 + ids.TEXT_CHARS)


def _is_free(route: EndpointState, name: bytes) -> bool:
    """Tell whether the endpoint does not send this header itself. It wins over a policy: without its credential nothing would
    arrive, and receivers differ about a name that comes twice."""
    low = name.lower()
    if low == b"authorization" and route.credential is not None:
        return False
    return b"\r\n%b:" % low not in b"\r\n" + route.private.lower()


def header_lines(route: EndpointState, plan: Plan, signer: Signer, delivery: Delivery, *, now: int) -> bytes:
    """All header lines of one attempt. `now` (Unix milliseconds) is the attempt's own timestamp.

    The trace id is the event's id and the parent span is made from the delivery's own bits and the attempt,
    so a trace needs no storage and is the same wherever it is computed.
    """
    event = delivery.body[ID_AT]
    seconds = b"%d" % (now // 1000)
    signature = signer.sign(event, seconds, delivery.body)
    signed = b"webhook-timestamp: %b\r\nwebhook-signature: %b\r\n" % (seconds, signature)
    return _lines_of(route, plan, signer, delivery, event, signed, number=delivery.attempt)


def _lines_of(
    route: EndpointState,
    plan: Plan,
    signer: Signer,
    delivery: Delivery,
    event: bytes,
    signed: bytes,
    *,
    number: int,
) -> bytes:
    span = int.from_bytes(delivery.id[8:], "big") ^ number
    head = (
        b"%bwebhook-id: %b\r\n%bwebhook-key-id: %b\r\n"
        b"webhook-delivery-id: %b\r\nwebhook-attempt: %d\r\nwebhook-retry-count: %d\r\n"
        b"traceparent: 00-%b-%016x-01\r\n"
        % (
            route.head,
            event,
            signed,
            signer.key_ids,
            ids.delivery_text(event, delivery.id),
            number,
            number - 1,
            delivery.event.hex().encode(),
            span or 1,
        )
    )
    if plan.retry_header is not None and _is_free(route, plan.retry_header):
        head += b"%b: %d\r\n" % (plan.retry_header, number - 1)
    if plan.delivery_header is not None and _is_free(route, plan.delivery_header):
        shown = delivery.replay_of or delivery.id
        head += b"%b: %b\r\n" % (plan.delivery_header, ids.text(ids.DELIVERY, shown).encode())
    if delivery.replay_of is not None:
        head += b"webhook-replay: 1\r\n"
    return head


def kept_of(request: Request) -> bytes:
    """Return the part of a request that a dead letter which died of it keeps."""
    return json.encode(redact.request(request.headers, request.private))


def kept_later(route: EndpointState, plan: Plan, delivery: Delivery, *, now: int) -> bytes | None:
    """Return the part of its last request that a dead letter keeps where it dies later than of that, without a call:
    made anew from its endpoint as it is now, and without the instant, which is the history's. None where none was
    made."""
    number = delivery.attempt - 1  # the attempt in hand is never made
    if not number:
        return None
    event = ids.text(ids.EVENT, delivery.event).encode()
    lines = _lines_of(route, plan, signer_at(route, now), delivery, event, b"", number=number)
    private = route.private if route.credential is None else route.private + b"authorization: \r\n"
    return json.encode(redact.request(lines, private))


def signer_at(route: EndpointState, now: int) -> Signer:
    """The signer of the secrets that are active now, kept until one of them expires."""
    if route.signer is None or now >= route.signer_until:
        active = [s for s in route.secrets if s.expires_at is None or s.expires_at > now]
        active.sort(key=lambda secret: secret.id, reverse=True)  # ids carry their time: newest first
        route.signer = Signer(active, [ids.text(ids.SECRET, secret.id) for secret in active])
        route.signer_until = min((s.expires_at for s in active if s.expires_at is not None), default=NEVER)
    return route.signer
