"""Options that choose among deliveries, the same for lists, dead letters and replays."""

from __future__ import annotations

from typing import Annotated

import typer

Subject = Annotated[str | None, typer.Option(help="Only about this subject.")]
CorrelationId = Annotated[str | None, typer.Option(help="Only of this conversation.")]
Status = Annotated[
    int | None, typer.Option(help="Only where the last request was answered with this status.")
]
Error = Annotated[
    str | None, typer.Option(help="Only where the last request failed so, such as tls_expired.")
]
Receipt = Annotated[
    str | None,
    typer.Option(help="Only where the receiver told this: accepted, processed, rejected or finalized."),
]
Code = Annotated[str | None, typer.Option(help="Only where the receiver gave this code with it.")]
