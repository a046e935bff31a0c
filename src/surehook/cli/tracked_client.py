"""The client of commands, which notes each change that it asks for until the answer is printed."""

from __future__ import annotations

from typing import Any

from surehook.cli import pending_call
from surehook.client import Client, Refused
from surehook.client.calls import ApiCall, is_doubtful


class TrackedClient(Client):
    """A client whose latest change is known to `pending_call`."""

    def _do(self, call: ApiCall, type: Any = Any) -> Any:
        pending_call.began(call)
        try:
            return super()._do(call, type)
        except Refused as error:
            if not is_doubtful(error):
                pending_call.clear()
            raise
