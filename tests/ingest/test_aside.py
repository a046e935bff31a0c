"""What a dead letter keeps of a message, and what it says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pamqp import encode
from pamqp.commands import Basic

from surehook.ingest.aside import CARRIED_BYTES, carried, dead_letter


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
    # RabbitMQ would refuse it for the one and drop it for the other.
    assert (copy.user_id, copy.expiration) == (None, None)
    assert copy.headers == {
        "a": 1, "surehook-code": "unknown_field", "surehook-detail": "x" * 500, "surehook-queue": "orders",
    }  # fmt: skip
