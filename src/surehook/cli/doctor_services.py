"""The checks of `surehook doctor` beyond this machine: PostgreSQL, RabbitMQ, Redis. None of them writes anything."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from importlib import import_module
from urllib.parse import urlsplit

from surehook.cli.doctor_checks import Finding
from surehook.config import Settings
from surehook.core.errors import LedgerError, SettingsError
from surehook.ports.health import HealthAway

REACH_S = 2.0  # to a broker
AMQP_PORTS = {"amqp": 5672, "amqps": 5671}


def services(settings: Settings) -> Iterator[Finding]:
    """Check the ledger's server, and the other services of the settings."""
    yield ledger(settings)
    if settings.broker_url is not None:
        yield broker(settings.broker_url)
    if settings.redis_url is not None:
        yield redis(settings)


def ledger(settings: Settings) -> Finding:
    from surehook.maintenance import revisions

    where = settings.shown("database_url")
    try:
        current, head = revisions(settings, to_serve=True)
    except SettingsError as error:
        return Finding("ledger", "wrong", error.detail, error.hint)
    except LedgerError as error:
        return Finding(
            "ledger", "wrong", f"{where}: {error}", "look at the role's rights and the server's log"
        )
    if current is None:
        return Finding("ledger", "ok", f"{where} is empty; `surehook serve` makes the tables")
    if current != head:
        return Finding(
            "ledger",
            "warning",
            f"{where} has revision {current}, this version {head}",
            "surehook migrate plan",
        )
    return Finding("ledger", "ok", f"{where}, revision {current}")


def broker(url: str) -> Finding:
    """Check that one of its nodes listens. Rights show only when lanes begin to use it."""
    from surehook.bootstrap import needs

    try:
        with needs("broker_url", "RabbitMQ", "aio-pika", "rabbitmq"):
            import_module("surehook.lanes.rabbitmq")
    except SettingsError as error:
        return Finding("broker", "wrong", error.detail, error.hint)
    away = []
    for node in url.split(","):
        parts = urlsplit(node.strip())
        place = (parts.hostname or "", parts.port or AMQP_PORTS.get(parts.scheme, 5672))
        try:
            socket.create_connection(place, timeout=REACH_S).close()
        except OSError as error:
            away.append(f"{place[0]}:{place[1]}: {error.strerror or error}")
        else:
            return Finding("broker", "ok", f"{place[0]}:{place[1]} listens")
    return Finding("broker", "warning", "; ".join(away), "start it; until then workers claim from the ledger")


def redis(settings: Settings) -> Finding:
    from surehook.bootstrap import open_health

    async def ask() -> None:
        health = open_health(settings)
        assert health is not None
        try:
            await health.open()
        finally:
            await health.close()

    try:
        asyncio.run(ask())
    except SettingsError as error:
        return Finding("redis", "wrong", error.detail, error.hint)
    except HealthAway as away:
        return Finding(
            "redis", "warning", str(away), "start it; until then each process decides on what it sees"
        )
    return Finding("redis", "ok", f"{settings.shown('redis_url')} answers")
