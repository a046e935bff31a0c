"""/v1/notices"""

from __future__ import annotations

import re

from surehook.api import query, show
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.api.query import Parameter
from surehook.core import ids
from surehook.core.answers import NoticeOut
from surehook.core.errors import Problem
from surehook.ports.reading import NoticeFilter

_KIND = re.compile(r"[a-z_]{1,32}\.[a-z_]{1,32}", re.ASCII)
KINDS = (
    "endpoint.disabled", "endpoint.failure", "endpoint.blocked", "breaker.opened", "breaker.closed",
    "delivery.dead", "delivery.dropped", "delivery.overdue", "delivery.unfinalized", "disk.floor_reached", "disk.floor_left",
    "disk.sending_paused", "disk.sending_resumed",
    "descriptors.shortage_began", "descriptors.shortage_ended", "refusals.began", "refusals.ended",
    "ledger.away", "ledger.back", "ledger.refusals_began", "ledger.refusals_ended", "lane.unserved", "lane.served",
)  # fmt: skip


async def list_all(asked: ApiRequest) -> ApiAnswer:
    where = NoticeFilter(**asked.query_filters())
    page = await asked.services.engine.ledger.notices(where, limit=asked.limit, after=asked.after)
    return asked.page(page, show.notice)


def _read_kind(written: str) -> str:
    """The list of kinds is open: a well-formed one that is not known finds nothing."""
    if _KIND.fullmatch(written) is None:
        raise Problem(
            "bad_parameter", "not a kind of notice", field="kind", hint="such as " + ", ".join(KINDS)
        )
    return written


KIND = Parameter(
    "kind", "Kind of notice, such as " + ", ".join(KINDS) + ".", _read_kind,
    {"type": "string", "pattern": r"^[a-z_]{1,32}\.[a-z_]{1,32}$", "examples": list(KINDS)},
)  # fmt: skip

OPERATIONS = (
    Operation(
        method="GET", path="/v1/notices", name="list_notices", handle=list_all,
        about="What operators and tenants should know, newest first.", answers={200: NoticeOut}, is_list=True,
        query=(
            query.tenant(),
            query.an_id("endpoint", ids.ENDPOINT, "Id of an endpoint."),
            KIND,
            query.instant("since", "At this instant or later."),
        ),
    ),
)  # fmt: skip
