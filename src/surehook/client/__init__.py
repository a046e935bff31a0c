"""Publish events and manage a surehook server: `Client`, and `AsyncClient`, which awaits. Needs msgspec alone.

    from surehook.client import Client

    hooks = Client("http://127.0.0.1:8080", key)
    sent = hooks.send("document.signed", {"document_id": "doc_42"}, tenant="acme", key="doc_42:signed")

Both run the same scripts (`base`) over pure rules (`calls`, `http1`); only the connections differ (`sockets`, `streams`).
The classes are loaded when they are first asked for, so that a program pays for the one it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from surehook.client.errors import ClientError, Refused, Unreachable

if TYPE_CHECKING:
    from surehook.client.aio import AsyncClient
    from surehook.client.calls import Sent
    from surehook.client.sync import Client

__all__ = ["AsyncClient", "Client", "ClientError", "Refused", "Sent", "Unreachable"]

_HOMES = {"Client": "sync", "AsyncClient": "aio", "Sent": "calls"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
