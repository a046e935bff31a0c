"""The API as a running server: the application behind the hot door, on a server that bounds what callers send."""

from __future__ import annotations

from base64 import b32encode
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from surehook.api import app as application
from surehook.api.auth import KeyRing, digest
from surehook.api.ingest import App, Ingest, IntakeEngine
from surehook.api.roles import RoleDoor
from surehook.api.services import ManagementEngine, Metrics, Services
from surehook.api.traffic import Traffic, Watched
from surehook.core import ids
from surehook.ports.registry import ApiKey

NEW_KEY_BYTES = 25  # random bytes in a key that the server makes: 200 bits


class DoorEngine(ManagementEngine, IntakeEngine, Protocol):
    """The engine, as both doors need it."""


class Door(Struct):
    """The API, ready to be served. `new_key` is the admin key that was made for an empty ledger."""

    app: App
    services: Services
    new_key: str | None


async def open_door(
    engine: DoorEngine,
    *,
    own_key: str | None,
    traffic: Traffic,
    metrics: Metrics,
    metrics_open: bool = False,
    reasons: Sequence[Callable[[], str | None]] = (),
    role: str = "all",
    makes_key: bool = True,
    sole: bool = True,
) -> Door:
    """The application over a started engine. Without a key in the settings an empty ledger gets one, shown once, by
    the process that `makes_key`. `sole`: the ledger admits one process at a time."""
    new_key = None
    if makes_key and own_key is None and not await engine.ledger.keys():
        new_key = "shk_" + b32encode(engine.entropy.bits(NEW_KEY_BYTES)).decode().lower()
        now = engine.clock.now()
        await engine.ledger.add_key(
            ApiKey(
                id=ids.uuid7(now, engine.entropy.bits(10)),
                digest=digest(new_key.encode()),
                name="made at first start",
                created_at=now,
            )
        )
    keys = KeyRing(engine.ledger, own=[] if own_key is None else [own_key])
    services = Services(
        engine, keys, traffic=traffic, metrics=metrics, metrics_open=metrics_open, reasons=reasons
    )
    await services.start(resume=sole and role != "worker")
    if role != "worker":
        engine.look_after("replays", services.replays.look)
    app: App = Ingest(
        application.build(services),
        engine=engine,
        keys=keys,
        refresh_keys=keys.load,
        turns=services.turns,
    )
    if role in ("worker", "console"):
        app = RoleDoor(app, role)
    return Door(Watched(app, traffic), services, new_key)
