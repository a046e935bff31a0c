"""The client of commands, which notes each change that it asks for until the answer is printed."""

from __future__ import annotations

from typing import Any

from surehook.cli import pending_call
from surehook.client import Client, Refused
from surehook.client.calls import ApiCall, is_doubtful
from surehook.core.effects import Script


class TrackedClient(Client):
    """A client whose latest change is known to `pending_call`."""

    def _exchange(self, call: ApiCall, type: object = Any) -> Script[object]:
        pending_call.began(call)
        try:
            return (yield from super()._exchange(call, type))
        except Refused as error:
            if not is_doubtful(error):
                pending_call.clear()
            raise
