"""Publish events and manage a surehook server: `Client`, and `AsyncClient`, which awaits. Needs msgspec alone.

    from surehook.client import Client

    hooks = Client("http://127.0.0.1:8080", key)
    sent = hooks.send("document.signed", {"document_id": "doc_42"}, tenant="acme", key="doc_42:signed")
    for delivery in hooks.deliveries.list(tenant="acme", state="dead"):
        hooks.deliveries.resend(delivery.id)

Both run the same scripts (`base`) over pure rules (`calls`, `http1`); only the connections differ (`sockets`, `streams`).
Nouns of the API are in `resources`, their answers in `surehook.core.answers`. Classes are loaded when they are first asked
for, so that a program pays for those that it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surehook.client.errors import ClientError, Refused, Unreachable

if TYPE_CHECKING:
    from surehook.client.aio import AsyncClient
    from surehook.client.calls import Sent
    from surehook.client.sync import Client
    from surehook.core.answers import (
        AttemptOut,
        BreakerOut,
        DeliveryOut,
        EndpointOut,
        EventOut,
        EventTypeOut,
        LaneOut,
        NoticeOut,
        PreviewOut,
        ReplayOut,
        SecretOut,
        TenantOut,
    )

__all__ = [
    "AsyncClient",
    "AttemptOut",
    "BreakerOut",
    "Client",
    "ClientError",
    "DeliveryOut",
    "EndpointOut",
    "EventOut",
    "EventTypeOut",
    "LaneOut",
    "NoticeOut",
    "PreviewOut",
    "Refused",
    "ReplayOut",
    "SecretOut",
    "Sent",
    "TenantOut",
    "Unreachable",
]

_HOMES = {
    "Client": "surehook.client.sync",
    "AsyncClient": "surehook.client.aio",
    "Sent": "surehook.client.calls",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "surehook.core.answers")), name)
