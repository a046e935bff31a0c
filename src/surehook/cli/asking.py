"""The client of commands: it notes what it asks, for whoever interrupts it."""

from __future__ import annotations

from typing import Any

from surehook.cli import under_way
from surehook.client import Client, Refused
from surehook.client.calls import ApiCall, is_doubtful


class Asking(Client):
    """A client whose requests are known while their answer is not."""

    def _do(self, call: ApiCall, type: Any = Any) -> Any:
        under_way.begun(call)
        try:
            return super()._do(call, type)
        except Refused as error:
            if not is_doubtful(error):
                under_way.ended()
            raise
