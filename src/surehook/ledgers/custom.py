"""An endpoint's authentication, TLS and wanted receipts, each a JSON object in a binary column, or null.

All ledgers store them alike. They are binary because the first two hold secrets: encrypting them will change no column.
"""

from __future__ import annotations

from typing import Any

from msgspec import json

from surehook.core.authentication import Authentication
from surehook.core.model import EndpointTls
from surehook.core.receipt import Wanted

# Of the endpoint's table.
COLUMNS = frozenset({"authentication", "tls", "receipts"})

_authentication: json.Decoder[Authentication] = json.Decoder(Authentication)
_tls = json.Decoder(EndpointTls)
_receipts = json.Decoder(Wanted)


def kept(value: Authentication | EndpointTls | Wanted | None) -> bytes | None:
    """Encode a value for its column."""
    return None if value is None else json.encode(value)


def authentication(column: Any) -> Authentication | None:
    return None if column is None else _authentication.decode(column)


def tls(column: Any) -> EndpointTls | None:
    return None if column is None else _tls.decode(column)


def receipts(column: Any) -> Wanted | None:
    return None if column is None else _receipts.decode(column)
