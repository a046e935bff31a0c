"""A receiving application that tells its sender: `app` for uvicorn, `inbox` for the command line, in processes of their own.

Its settings come from the environment: TOLD_DATABASE, TOLD_SECRET, TOLD_RECEIPTS.
"""

from __future__ import annotations

import os
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Mount

from surehook.inbox import Inbox, ReceiptsTo, Rules, sources

inbox = Inbox(
    os.environ["TOLD_DATABASE"],
    [
        sources.named(
            "surehook", secret=os.environ["TOLD_SECRET"], receipts=ReceiptsTo(os.environ["TOLD_RECEIPTS"])
        )
    ],
    rules=Rules(idle_s=0.1),
)


@inbox.on("surehook", "*", final=False)
def stored(event: Any, tx: Any) -> None:
    """Somebody else has the last word."""


app = Starlette(routes=[Mount("/hooks", inbox.asgi())], lifespan=inbox.lifespan)
