"""The ready table for signing: sent, viewed, signed, countersigned, completed; declined, voided, expired.

A document may have many signers. What concerns one of them (`data.signer` says whom) moves that signer; the document moves
with the first of them, and `document.completed` is the producer's word that all have signed. One signer who declines
ends the document: there is no agreement any more. It goes on only when the producer says so by a newer workflow
version, or an operator by a remediation token.
"""

from __future__ import annotations

from surehook.core.workflow.table import Table
from surehook.core.workflow.table_values import Order, Parties

SIGNING = Table(
    document_type="signing",
    version="2",
    states=(
        "draft",
        "sent",
        "viewed",
        "signed",
        "countersigned",
        "completed",
        "declined",
        "voided",
        "expired",
    ),
    initial="draft",
    terminal=("completed", "declined", "voided", "expired"),
    moves={
        "document.sent": {"draft": "sent"},
        "document.viewed": {"sent": "viewed"},
        "document.signed": {"sent": "signed", "viewed": "signed"},
        "document.countersigned": {"signed": "countersigned"},
        "document.completed": {"signed": "completed", "countersigned": "completed"},
        "document.declined": {
            "sent": "declined",
            "viewed": "declined",
            "signed": "declined",
            "countersigned": "declined",
        },
        "document.voided": {"*": "voided"},
        "document.expired": {"*": "expired"},
    },
    informational=(
        "certificate.attached",
        "certificate.revoked",
        "document.downloaded",
        "document.sealed",
        "identity.failed",
        "identity.verified",
        "signer.delegated",
        "signer.notified",
        "signer.reminded",
    ),
    remedies={
        "document.sent": {"declined": "sent", "voided": "sent", "expired": "sent"},
        "document.signed": {"declined": "signed"},
        "signer.replaced": {"declined": "sent"},
    },
    branches={"signer.replaced": "replace", "approval.inserted": "beside", "document.voided": "supersede"},
    parties=Parties(
        states=("pending", "viewed", "signed", "declined", "replaced"),
        initial="pending",
        terminal=("signed", "declined", "replaced"),
        moves={
            "document.viewed": {"pending": "viewed"},
            "document.signed": {"pending": "signed", "viewed": "signed"},
            "document.countersigned": {"pending": "signed", "viewed": "signed"},
            "document.declined": {"pending": "declined", "viewed": "declined"},
        },
        remedies={"document.signed": {"declined": "signed"}, "document.viewed": {"declined": "viewed"}},
        replaced="replaced",
    ),
    order=Order(mode="strict"),
    aliases={
        "document.opened": "document.viewed",
        "recipient.viewed": "document.viewed",
        "recipient.signed": "document.signed",
        "recipient.countersigned": "document.countersigned",
        "recipient.declined": "document.declined",
        "recipient.replaced": "signer.replaced",
        "signer.viewed": "document.viewed",
        "signer.signed": "document.signed",
        "signer.declined": "document.declined",
    },
)
