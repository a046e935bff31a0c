"""Doors of processes that serve a part of the API: the rest is refused with an explanation, not with a 404.

worker    only /healthz, /readyz and /metrics
console   everything but the two publishing calls
"""

from __future__ import annotations

from surehook.api.ingest import App, Receive, Scope, Send
from surehook.api.problems import refuse
from surehook.core.errors import Problem

OPEN_ON_WORKERS = frozenset({"/healthz", "/readyz", "/metrics"})
PUBLISHING = frozenset({"/v1/events", "/v1/events/batch"})


class RoleDoor:
    """ASGI: refuses calls that this role does not serve, and passes the others to `app`."""

    def __init__(self, app: App, role: str) -> None:
        self._app = app
        self._role = role

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = self._problem(scope["path"], scope["method"]) if scope["type"] == "http" else None
        if problem is None:
            await self._app(scope, receive, send)
        else:
            await refuse(problem)(scope, receive, send)

    def _problem(self, path: str, method: str) -> Problem | None:
        if self._role == "worker" and path not in OPEN_ON_WORKERS:
            return Problem(
                "served_elsewhere",
                "this process is a worker: it delivers, and serves /healthz, /readyz and /metrics alone",
                hint="ask a process whose role is api, console or all",
                status=421,
            )
        if self._role == "console" and method == "POST" and path in PUBLISHING:
            return Problem(
                "served_elsewhere",
                "this process is a console: it takes no events",
                hint="publish to a process whose role is api or all",
                status=421,
            )
        return None
