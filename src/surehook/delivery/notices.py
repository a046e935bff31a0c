"""Notices that the ledger has kept: counted, and told to whoever watches."""

from __future__ import annotations

from surehook.core import ids
from surehook.core.model import Notice
from surehook.delivery.watch import DeliveryCounts
from surehook.ports.telemetry import Telemetry


class Notices:
    """Told by whoever recorded one."""

    def __init__(self, *, watch: DeliveryCounts, telemetry: Telemetry) -> None:
        self._watch = watch
        self._telemetry = telemetry

    def tell(self, notice: Notice) -> None:
        self._watch.noticed(notice.kind)
        self._telemetry.fact(
            notice.kind,
            tenant=notice.tenant,
            endpoint=None if notice.endpoint is None else ids.text(ids.ENDPOINT, notice.endpoint),
            delivery=None if notice.delivery is None else ids.text(ids.DELIVERY, notice.delivery),
            detail=notice.detail,
        )
