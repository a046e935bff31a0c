"""The workflow of the tests: a contract, numbered, in strict order."""

from __future__ import annotations

from surehook.inbox.workflow import Fields, Order, Table

TABLE = Table(
    document_type="contract",
    states=("draft", "sent", "viewed", "signed", "completed"),
    initial="draft",
    terminal=("completed",),
    moves={
        "document.sent": {"draft": "sent"},
        "document.viewed": {"sent": "viewed"},
        "document.signed": {"viewed": "signed"},
        "document.completed": {"signed": "completed"},
    },
    order=Order(mode="strict"),
    fields=Fields(document="document", sequence="n"),
)
STORY = ("document.sent", "document.viewed", "document.signed", "document.completed")
