"""A source whose bodies hold several events."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from surehook.inbox import sources
from surehook.inbox.receive import IncomingRequest
from surehook.inbox.sources import BODY, Field, Header, Provider, Signed
from tests.inbox.signers import hex_of

SECRET = "secret of batches"
PROVIDER = Provider(
    name="batch",
    scheme=Signed(Header("X-Signature"), (BODY,)),
    id=(Field("id"),),
    type=(Field("type"),),
    batch=True,
    caveat="a test's own",
)
EVENTS = [{"id": "evt_1", "type": "a", "word": "one"}, {"id": "evt_2", "type": "b", "word": "two"}]


def _call(events: list[dict[str, Any]], *, at: int) -> IncomingRequest:
    body = json.dumps(events).encode()
    return IncomingRequest(
        method="POST",
        source="batch",
        query="",
        url="http://receiver/batch",
        headers=[("x-signature", hex_of(SECRET, body))],
        peer="127.0.0.1",
        body=body,
    )


batch = SimpleNamespace(source=sources.of(PROVIDER, secret=SECRET), call=_call)
