"""Publish in the application's own transaction: what is committed is sent, what is rolled back never was.

    from surehook.outbox import Outbox

    outbox = Outbox(tenant="acme")
    outbox.put(tx, "document.signed", {"document_id": "doc_42"}, subject="doc_42")

`outbox.py` writes rows, with the statements of `statements.py`, in the transactions of `transactions.py`. Needs msgspec and
what the application uses already.
"""

from surehook.core.errors import Problem
from surehook.outbox.outbox import Outbox, PutFields

__all__ = ["Outbox", "Problem", "PutFields"]
