"""Receipts on their way in: believed by their signature alone, then joined to what is known.

The secret is looked up in memory by the endpoint that the message names, so a stranger's message costs one hash and no
look into the ledger, except that a refusal first makes sure that memory is up to date. Everything that is not believed
looks the same outside: no endpoint, no secret, a wrong signature, an old message.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from surehook.core import ids, receipt_message, signature
from surehook.core.errors import Problem
from surehook.core.receipt import HEADER
from surehook.core.verification import VerifyError
from surehook.delivery.endpoint_state import EndpointState
from surehook.delivery.managing import Manager

Pairs = Sequence[tuple[str, str]]


class TakenReceipts(Struct, frozen=True):
    """Number of receipts that were taken, and the deliveries that the endpoint never had or that are past their retention."""

    taken: int
    unknown: list[bytes]


async def take(manager: Manager, headers: Pairs, body: bytes) -> TakenReceipts:
    """Raises Problem: `bad_signature` (401), `unknown_delivery` (404, where none of them is known), `invalid_receipts`
    and the like for what cannot be read."""
    route = _believed(manager, headers, body)
    if route is None:
        await manager.current()
        route = _believed(manager, headers, body)
    if route is None:
        raise Problem(
            "bad_signature",
            "the message is not signed by an endpoint's secret as receipts are",
            hint="docs: receipts; compare the secret and both clocks",
            status=401,
        )
    said = receipt_message.read(body)
    endpoint = route.endpoint
    heard = await manager.ledger.apply_receipts(
        endpoint.id, said, tenant=endpoint.tenant, now=manager.clock.now()
    )
    for stage in heard.reached:
        manager.watch.heard(stage)
    if len(heard.unknown) == len(said):
        detail = "this endpoint had none of these deliveries, or they are past their retention"
        raise Problem("unknown_delivery", detail, field="receipts", status=404)
    return TakenReceipts(len(said) - len(heard.unknown), list(dict.fromkeys(heard.unknown)))


def _believed(manager: Manager, headers: Pairs, body: bytes) -> EndpointState | None:
    """The endpoint whose secret signed this message, or None."""
    named = [value for name, value in headers if name.lower() == HEADER]
    endpoint = ids.try_parse(ids.ENDPOINT, named[0]) if len(named) == 1 else None
    route = None if endpoint is None else manager.directory.routes.get(endpoint)
    if route is None:
        return None
    now = manager.clock.now()
    secrets = [
        secret.material
        for secret in route.secrets
        if secret.kind == signature.V1 and (secret.expires_at is None or secret.expires_at > now)
    ]
    try:
        receipt_message.verify(headers, body, secrets, now=now / 1000)
    except VerifyError:
        return None
    return route
