"""/healthz, /readyz, /metrics"""

from __future__ import annotations

from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.core.answers import HealthOut, ReadyOut
from surehook.core.errors import Problem


async def healthz(asked: ApiRequest) -> ApiAnswer:
    """The process answers; nothing else is asked."""
    return ApiAnswer(HealthOut("ok"))


async def readyz(asked: ApiRequest) -> ApiAnswer:
    reason = asked.services.ready()
    if reason is not None:
        raise Problem("not_ready", reason, status=503)
    return ApiAnswer(ReadyOut("ready", asked.services.engine.warning()))


async def metrics(asked: ApiRequest) -> ApiAnswer:
    return ApiAnswer(await asked.services.scrape())


OPERATIONS = (
    Operation(
        method="GET", path="/healthz", name="healthz", handle=healthz, about="The process is alive.",
        answers={200: HealthOut}, needs_key=False,
    ),
    Operation(
        method="GET", path="/readyz", name="readyz", handle=readyz,
        about="The ledger is reachable, the lease held, and not every publish is refused; else 503. "
        "`warning` tells of a lane that no process serves.", answers={200: ReadyOut},
        problems=("not_ready",), needs_key=False,
    ),
    Operation(
        method="GET", path="/metrics", name="metrics", handle=metrics, about="Prometheus text format.",
        answers={200: bytes},
    ),
)  # fmt: skip
