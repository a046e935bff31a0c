"""Facts for operators: a name and fields. Never awaited, never raises, never called once per delivery."""

from __future__ import annotations

from typing import Protocol


class Telemetry(Protocol):
    def fact(self, name: str, **fields: object) -> None:
        """Something worth a log line: `breaker.opened`, `ledger.away`, `node.evicted`, …"""
        ...
