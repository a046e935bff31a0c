"""Found by the inbox because of its name."""

from __future__ import annotations

from typing import Any

from surehook.inbox.django import inbox
from tests.inbox.shop.models import Contract


@inbox.on("partner", "document.signed")
def signed(event: Any, tx: Any) -> None:
    Contract.objects.filter(number=event.body["number"]).update(state="signed")
