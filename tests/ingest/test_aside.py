"""The address of a queue, and what a dead letter keeps of a message's headers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pamqp import encode
from pamqp.commands import Basic

from surehook.core.errors import SettingsError
from surehook.ingest.aside import CARRIED_BYTES, carried, dead_letter
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


def test_a_copy_leaves_out_what_cannot_be_written() -> None:
    fine: dict[str, Any] = {"a": 1, "b": ["x", {"y": None}], "when": datetime(2026, 1, 1, tzinfo=UTC)}
    assert carried({**fine, "double": 1e300, "huge": 2**70, "odd": object()}) == fine


def test_a_copy_of_many_headers_fits_into_a_frame() -> None:
    kept = carried({f"header-{number}": "x" * 1_000 for number in range(200)})
    assert 60 <= len(kept) < 66
    assert len(encode.field_table(kept)) <= CARRIED_BYTES


def test_a_dead_letter_says_why_and_stays_what_it_was() -> None:
    came = Basic.Properties(
        message_id="m1", content_type="application/json", user_id="ada", expiration="5",
        headers={"a": 1, "surehook-code": "of an earlier time", "surehook-field": "type"},
    )  # fmt: skip
    copy = dead_letter(came, {"code": "unknown_field", "detail": "x" * 600, "field": None, "queue": "orders"})
    assert (copy.message_id, copy.content_type, copy.delivery_mode) == ("m1", "application/json", 2)
    assert (copy.user_id, copy.expiration) == (
        None,
        None,
    )  # RabbitMQ would refuse the one and drop it for the other
    assert copy.headers == {
        "a": 1, "surehook-code": "unknown_field", "surehook-detail": "x" * 500, "surehook-queue": "orders",
    }  # fmt: skip
