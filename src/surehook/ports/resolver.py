"""A host name to its addresses."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Resolved(Struct, frozen=True):
    """All addresses of an absolute name, both families, as text; `failure` is set when there are none."""

    addresses: tuple[str, ...] = ()
    failure: str | None = None  # `dns_nxdomain`, `dns_failure`, `dns_timeout`


class Resolver(Protocol):
    def cached(self, host: str) -> Resolved | None:
        """The answer already in memory and still fresh, or None."""
        ...

    async def resolve(self, host: str) -> Resolved:
        """Ask for the absolute name `host`; never raises, never uses search lists."""
        ...

    async def close(self) -> None: ...
