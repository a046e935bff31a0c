"""The address of a queue, or a sentence about what is none."""

from __future__ import annotations

import pytest

from surehook.core.errors import SettingsError
from surehook.ingest.rabbit import parse


@pytest.mark.parametrize(
    ("source", "url", "queue"),
    [
        ("amqp://host/orders", "amqp://host/%2F", "orders"),
        ("amqps://ada:secret@host:5671/shop/orders", "amqps://ada:secret@host:5671/shop", "orders"),
        ("amqp://host/%2F/orders?heartbeat=5", "amqp://host/%2F?heartbeat=5", "orders"),
        ("amqp://[::1]:5672/a%2Fb", "amqp://[::1]:5672/%2F", "a/b"),
    ],
)
def test_an_address_is_a_broker_and_a_queue(source: str, url: str, queue: str) -> None:
    assert parse(source) == (url, queue)


@pytest.mark.parametrize(
    "source",
    ["", "orders", "http://host/orders", "amqp:///orders", "amqp://host", "amqp://host/", "amqp://host/a/b/c",
     "amqp://[::1/orders", "amqp://host:abc/orders", "amqp://host:99999/orders", "amqp://host:0/orders"],
)  # fmt: skip
def test_what_is_no_address_is_said(source: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse(source)
    assert "/queue" in (caught.value.hint or "")
