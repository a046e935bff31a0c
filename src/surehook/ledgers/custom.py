"""How an endpoint's authentication, TLS and wish for receipts are kept: a JSON object in a binary column, None where absent.

One form for every ledger. Binary, since the first two hold secrets: encrypting them will change the bytes and no column.
"""

from __future__ import annotations

from typing import Any

from msgspec import json

from surehook.core.authentication import Authentication
from surehook.core.model import EndpointTls
from surehook.core.receipt import Wanted

COLUMNS = frozenset({"authentication", "tls", "receipts"})  # of the endpoint's table

_authentication: json.Decoder[Authentication] = json.Decoder(Authentication)
_tls = json.Decoder(EndpointTls)
_receipts = json.Decoder(Wanted)


def kept(value: Authentication | EndpointTls | Wanted | None) -> bytes | None:
    """The column's value."""
    return None if value is None else json.encode(value)


def authentication(column: Any) -> Authentication | None:
    return None if column is None else _authentication.decode(column)


def tls(column: Any) -> EndpointTls | None:
    return None if column is None else _tls.decode(column)


def receipts(column: Any) -> Wanted | None:
    return None if column is None else _receipts.decode(column)
