"""Spans of OpenTelemetry, as an exporter gets them: one for each committed change, as long as people waited."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from surehook.inbox import Backoff, Inbox, spans
from surehook.inbox.sources import Field
from surehook.inbox.transitions import Transition
from tests.inbox.house import NOW, Clock, call, message, partner
from tests.inbox.test_documents import STRICT, story, table

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Traced:
    """An inbox whose spans can be looked at."""

    def __init__(self, url: str) -> None:
        source = partner(correlation_id=Field("session"))
        self.inbox = Inbox(url, [source], clock=Clock(), backoff=Backoff(first_s=1, attempts=2, jitter=0))
        self.inbox.create_tables()
        self._exporter = InMemorySpanExporter()
        self._provider = TracerProvider()
        self._provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = self._provider.get_tracer("test")
        self.inbox.observe(spans.to(self.tracer))

    def receives(
        self, event_id: str, type: str = "document.signed", *, headers: Any = (), **data: Any
    ) -> None:
        made = call(*message(event_id, type, **data), at=self.inbox.clock.now())
        made.headers.extend(headers)
        assert self.inbox.receive(made).status == 200

    def spans(self) -> list[Any]:
        """What was exported since the last look."""
        found = list(self._exporter.get_finished_spans())
        self._exporter.clear()
        return found

    def close(self) -> None:
        self._provider.shutdown()
        self.inbox.close()


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    traced = Traced(f"sqlite:///{tmp_path / 'inbox.db'}")
    yield traced
    traced.close()


def test_an_event_is_a_span_from_its_arrival_to_the_commit_linked_to_the_senders(traced):
    traced.inbox.on("partner", name="shop.signed", version="7")(lambda event, tx: None)
    traced.receives("evt_1", session="s7", headers=[("Traceparent", TRACEPARENT)])
    traced.inbox.clock.passes(2)
    with traced.tracer.start_as_current_span("what the worker is in"):
        traced.inbox.work()
    span, outer = traced.spans()
    assert outer.name == "what the worker is in"
    assert (span.name, span.kind, span.status.status_code) == (
        "process partner",
        SpanKind.CONSUMER,
        StatusCode.UNSET,
    )
    assert (span.start_time, span.end_time) == (NOW * 1_000_000, (NOW + 2_000) * 1_000_000)
    (link,) = span.links
    assert f"{link.context.trace_id:x}-{link.context.span_id:016x}" == TRACEPARENT[3:-3]
    assert span.parent is None and span.context.trace_id != link.context.trace_id
    assert dict(span.attributes) == {
        "messaging.system": "surehook",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "partner",
        "messaging.message.id": "evt_1",
        "messaging.message.conversation_id": "s7",
        "surehook.ref": traced.inbox.events()[0].ref,
        "surehook.event_type": "document.signed",
        "surehook.before": "accepted",
        "surehook.after": "finalized",
        "surehook.attempt": 1,
        "surehook.replay": 0,
        "surehook.handler": "shop.signed",
        "surehook.handler_version": "7",
    }


def test_a_failed_attempt_and_a_dead_event_are_errors_and_a_replay_has_no_length(traced):
    traced.inbox.on("partner")(lambda event, tx: 1 / 0)
    traced.receives("evt_1")
    for _ in range(2):
        traced.inbox.work()
        traced.inbox.clock.passes(5)
    ends = traced.spans()
    assert [one.attributes["surehook.after"] for one in ends] == ["accepted", "dead"]
    assert {(one.status.status_code, one.attributes["error.type"]) for one in ends} == {
        (StatusCode.ERROR, "handler_failed")
    }
    traced.inbox.clock.passes(86_400)
    traced.inbox.replay(reason="mended", id="evt_1")
    traced.inbox.work()
    (again,) = traced.spans()
    assert (again.attributes["surehook.replay"], again.start_time) == (1, again.end_time)


def test_moves_of_documents_and_words_of_people_are_spans_too(traced):
    traced.inbox.follow(table(**STRICT), "partner")
    traced.inbox.on("partner", final=False)(lambda event, tx: None)
    event_id, type, data = story("doc_1")[0]
    traced.receives(event_id, type, **data)
    traced.inbox.clock.passes(1)
    traced.inbox.work()
    moved = next(one for one in traced.spans() if one.name == "move contract")
    assert (moved.kind, moved.end_time - moved.start_time) == (SpanKind.INTERNAL, 1_000_000_000)
    shown = {
        name: moved.attributes[f"surehook.{name}"] for name in ("before", "after", "document", "verdict")
    }
    assert shown == {"before": "draft", "after": "sent", "document": "doc_1", "verdict": "applied"}
    assert "messaging.operation.type" not in moved.attributes
    traced.inbox.clock.passes(60)
    assert traced.inbox.finalize(traced.inbox.events()[0].ref)
    (settled,) = traced.spans()
    assert (settled.name, settled.kind) == ("settle partner", SpanKind.CLIENT)
    assert settled.start_time == settled.end_time == (NOW + 61_000) * 1_000_000


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("traceparent", "odd")],
        [("traceparent", f"00-{'0' * 32}-00f067aa0ba902b7-01")],
        [("traceparent", TRACEPARENT), ("traceparent", TRACEPARENT)],
        [("x-note", "traceparent")],
    ],
)
def test_what_names_no_trace_is_linked_to_none(traced, headers):
    traced.inbox.on("partner")(lambda event, tx: None)
    traced.receives("evt_1", headers=headers)
    traced.inbox.work()
    assert [list(one.links) for one in traced.spans()] == [[]]


def test_spans_without_their_package_say_what_to_install():
    code = (
        "import sys; sys.modules['opentelemetry.context'] = None\n"
        "try: import surehook.inbox.spans\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "SettingsError" in told and "surehook[inbox,tracing]" in told


@pytest.mark.parametrize(
    "code", ["handler_failed", "handler_timeout", "commit_failed", "unreadable", "workflow_error"]
)
def test_an_attempt_that_failed_is_an_error_whatever_failed(traced, code):
    one = Transition(
        kind="event.ended", before="accepted", after="accepted", source="partner", tenant="", event_id="evt_1", ref="inb_1",
        code=code,
    )  # fmt: skip
    spans.to(traced.tracer)(one)
    (span,) = traced.spans()
    assert span.status.status_code is StatusCode.ERROR
