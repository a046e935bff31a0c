"""Facts about the installation that are kept as notices, so that an operator finds them the next day."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from surehook.core import ids
from surehook.core.model import Notice
from surehook.delivery.engine import Engine
from surehook.delivery.unserved import INSTALLATION
from surehook.ports.telemetry import Telemetry

ENDS = {  # each with its beginning
    "disk.floor_left": "disk.floor_reached",
    "disk.sending_resumed": "disk.sending_paused",
    "descriptors.shortage_ended": "descriptors.shortage_began",
    "refusals.ended": "refusals.began",
    "ledger.refusals_ended": "ledger.refusals_began",
    "ledger.back": "ledger.away",
}
BEGINNINGS = frozenset(ENDS.values())
AGAIN_S = 600.0  # between two kept beginnings of a kind and code: every change is a log line anyway


class Begun(Struct):
    """A fact that began something, and the time from which it is kept."""

    kept_at: float
    keeping: asyncio.Task[None]
    is_open: bool = True  # it has not ended


class Noticing:
    """ports.Telemetry: passes every fact on, and keeps those of `ENDS` in the ledger as well.

    The last notice of a kind tells the present state. So an end is kept if its beginning was, and a beginning that follows
    another too soon is kept later, or not at all if it has ended by then.
    """

    def __init__(self, telemetry: Telemetry, engine: Engine, *, boot: Callable[[], float]) -> None:
        self._telemetry = telemetry
        self._engine = engine
        self._boot = boot
        self._begun: dict[tuple[str, str], Begun] = {}  # the last by kind and code, both of closed lists

    def fact(self, name: str, **fields: object) -> None:
        self._telemetry.fact(name, **fields)
        now, code = self._boot(), str(fields.get("code", ""))
        last = self._begun.get((ENDS.get(name, name), code))
        if name in BEGINNINGS:
            if last is None or not last.is_open:
                at = now if last is None else max(now, last.kept_at + AGAIN_S)
                self._begun[name, code] = Begun(at, self._note(name, fields, at))
        elif last is not None and last.is_open:
            last.is_open = False
            if now < last.kept_at:
                last.keeping.cancel()
                last.kept_at -= AGAIN_S  # so the one before it was
            else:
                self._note(name, fields, now)

    def _note(self, name: str, fields: Mapping[str, object], at: float) -> asyncio.Task[None]:
        engine = self._engine
        notice = Notice(
            id=ids.uuid7(engine.clock.now(), engine.entropy.bits(10)),
            at=engine.clock.now(),
            kind=name,
            tenant=INSTALLATION,
            endpoint=None,
            delivery=None,
            detail=", ".join(f"{field} {value}" for field, value in fields.items()),
        )
        # Retried until the ledger, which the notice may be about, is back.
        return engine.loops.keep("notice", partial(self._keep, notice, at))

    async def _keep(self, notice: Notice, at: float) -> None:
        engine, wait_s = self._engine, at - self._boot()
        if wait_s > 0:
            await engine.clock.sleep(wait_s)
        now = engine.clock.now()
        await engine.ledger.record([], node=engine.node.id, health=[], breakers=[], notices=[notice], now=now)
        engine.watch.noticed(notice.kind)
