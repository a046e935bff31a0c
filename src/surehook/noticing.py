"""Facts about the installation that are durable notices too: an operator who comes tomorrow finds them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from surehook.core import ids
from surehook.core.model import Notice
from surehook.delivery.engine import Engine
from surehook.delivery.unserved import INSTALLATION
from surehook.ports.telemetry import Telemetry

NOTICED = frozenset({
    "disk.floor_reached", "disk.floor_left",
    "disk.sending_paused", "disk.sending_resumed", "descriptors.shortage_began", "descriptors.shortage_ended",
    "refusals.began", "refusals.ended", "ledger.away", "ledger.back",
})  # fmt: skip
AGAIN_S = 600.0  # of one kind and code at most one notice in so long: every change is a line of log anyway


class Noticing:
    """ports.Telemetry: passes every fact on, and keeps those of `NOTICED` in the ledger as well."""

    def __init__(self, telemetry: Telemetry, engine: Engine, *, boot: Callable[[], float]) -> None:
        self._telemetry = telemetry
        self._engine = engine
        self._boot = boot
        self._kept_at: dict[tuple[str, str], float] = {}  # by kind and code, both of closed lists

    def fact(self, name: str, **fields: Any) -> None:
        self._telemetry.fact(name, **fields)
        if name not in NOTICED:
            return
        key, now = (name, str(fields.get("code", ""))), self._boot()
        if now - self._kept_at.get(key, float("-inf")) < AGAIN_S:
            return
        self._kept_at[key] = now
        engine = self._engine
        detail = ", ".join(f"{field} {value}" for field, value in fields.items())
        notice = Notice(
            id=ids.uuid7(engine.clock.now(), engine.entropy.bits(10)),
            at=engine.clock.now(),
            kind=name,
            tenant=INSTALLATION,
            endpoint=None,
            delivery=None,
            detail=detail,
        )
        engine.loops.keep(
            "notice", partial(self._keep, notice)
        )  # until the ledger, of which it may tell, is back

    async def _keep(self, notice: Notice) -> None:
        engine, now = self._engine, self._engine.clock.now()
        await engine.ledger.record([], node=engine.node(), health=[], breakers=[], notices=[notice], now=now)
        engine.watch.noticed(notice.kind)
