"""Trouble with receipts that their sender does not take: logged soon, once a minute while it lasts, and once when it is over.

While a sender is away each of its endpoints fails, so the limits are those of a source.
"""

from __future__ import annotations

from collections.abc import Callable

from surehook.core import instants, redact
from surehook.inbox.log_limits import KEYS_MOST, OncePer
from surehook.inbox.safe_log import log

TELL_S = 60.0


class ReceiptTrouble:
    """Logs what becomes of receipts, by source and endpoint. `boot` counts seconds."""

    def __init__(self, boot: Callable[[], float]) -> None:
        self._boot = boot
        self._often, self._overs = OncePer(boot, TELL_S), OncePer(boot, TELL_S)
        self._began: dict[tuple[str, str], float] = {}
        self._went_on: set[str] = set()  # sources of which that was said: their next failure is news

    def met(self, source: str, endpoint: str, url: str, why: str, again_at: int) -> None:
        """Note that the sender has not taken receipts, and when it is asked again."""
        if len(self._began) < KEYS_MOST:
            self._began.setdefault((source, endpoint), self._boot())
        if not self._often.may((source, why)) and source not in self._went_on:
            return
        self._went_on.discard(source)
        log.warning(
            "receipts of %s are not taken by %s: %s; tried again at %s",
            source, redact.url(url), redact.printable(why), instants.render(again_at),
        )  # fmt: skip

    def over(self, source: str, endpoint: str, url: str) -> None:
        """Note that the sender has taken receipts."""
        began = self._began.pop((source, endpoint), None)
        if began is not None and self._overs.may(source):
            self._went_on.add(source)
            log.warning(
                "receipts of %s are taken again by %s, after %.0f s",
                source, redact.url(url), self._boot() - began,
            )  # fmt: skip

    def unknown(self, source: str, url: str, count: int) -> None:
        """Note that the sender knows none of these deliveries, which ends their receipts."""
        if self._often.may((source, "unknown_delivery")):
            log.warning(
                "%s knows none of %d deliveries of %s, and their receipts are not sent again: is it the server that made them, "
                "or are they past its retention?", redact.url(url), count, source,
            )  # fmt: skip
