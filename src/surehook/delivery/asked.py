"""What an endpoint is asked, as values to compare and to keep."""

from __future__ import annotations

from surehook.core.model import Endpoint, Secret


def request_of(endpoint: Endpoint, secrets: tuple[Secret, ...]) -> tuple[object, ...]:
    """Everything of an endpoint that its requests are made from; its policy says how, not what is asked."""
    return (endpoint.url, endpoint.tls, endpoint.method, endpoint.headers, endpoint.authentication, secrets)


def finalize_ms(endpoint: Endpoint) -> int | None:
    """How long its receiver may be silent after a delivery."""
    wanted = None if endpoint.receipts is None else endpoint.receipts.finalize_within_s
    return None if wanted is None else wanted * 1000
