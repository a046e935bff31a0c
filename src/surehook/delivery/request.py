"""What leaves: the header lines of one attempt around the stored body (DESIGN section 12, "Outgoing request")."""

from __future__ import annotations

from surehook import __version__
from surehook.core import authentication, ids, receipt
from surehook.core.model import Delivery, Endpoint
from surehook.core.signature import Signer
from surehook.delivery.plans import Plan
from surehook.delivery.routes import Route

USER_AGENT = f"surehook/{__version__}"
# Every stored body begins with its event's id (core/envelope.py), so nothing has to be spelled again.
ID_AT = slice(len('{"id":"'), len('{"id":"') + len(ids.EVENT) + 1 + ids.TEXT_CHARS)


def static_heads(endpoint: Endpoint) -> tuple[bytes, bytes]:
    """The header lines that are the same on every attempt: those that say what is sent, and the private ones, which
    are the endpoint's other headers and its fixed credentials. (An OAuth2 token is put on when the request leaves.)"""
    said = {"content-type": "application/json", "user-agent": USER_AGENT}
    said.update((name.lower(), value) for name, value in endpoint.headers.items() if name.lower() in said)
    shown = authentication.header_name(endpoint.authentication)
    private = [
        f"{name}: {value}" for name, value in endpoint.headers.items() if name.lower() not in (shown, *said)
    ]
    credentials = authentication.fixed_line(endpoint.authentication)
    if credentials is not None:
        private.append(credentials)
    if endpoint.receipts is not None:
        said[receipt.HEADER] = ids.text(ids.ENDPOINT, endpoint.id)  # who asks, and never where to
    return _lines([f"{name}: {value}" for name, value in said.items()]), _lines(private)


def _is_free(route: Route, name: bytes) -> bool:
    """Whether the endpoint does not send this header itself. It wins over a policy: without its credential nothing would
    arrive, and receivers differ about a name that comes twice."""
    low = name.lower()
    if low == b"authorization" and route.grant is not None:
        return False
    return b"\r\n%b:" % low not in b"\r\n" + route.private.lower()


def _lines(lines: list[str]) -> bytes:
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def header_lines(route: Route, plan: Plan, signer: Signer, delivery: Delivery, *, now: int) -> bytes:
    """All header lines of one attempt. `now` (Unix milliseconds) is the attempt's own timestamp.

    The trace id is the event's id and the parent span is made from the delivery's own bits and the attempt,
    so a trace needs no storage and is the same wherever it is computed.
    """
    event = delivery.body[ID_AT]
    seconds = b"%d" % (now // 1000)
    number = delivery.attempt
    span = int.from_bytes(delivery.id[8:], "big") ^ number
    head = (
        b"%bwebhook-id: %b\r\nwebhook-timestamp: %b\r\nwebhook-signature: %b\r\nwebhook-key-id: %b\r\n"
        b"webhook-delivery-id: %b\r\nwebhook-attempt: %d\r\nwebhook-retry-count: %d\r\n"
        b"traceparent: 00-%b-%016x-01\r\n"
        % (
            route.head,
            event,
            seconds,
            signer.sign(event, seconds, delivery.body),
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
