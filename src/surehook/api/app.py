"""The HTTP API as an ASGI application: the table of calls becomes routes, and every error becomes a problem.

Management calls are plain routes of Starlette. msgspec reads and writes the bodies, since a strict reading that names
the field at fault is worth more here than a model per call.
`ingest.py` answers the two publishing calls in front of this application.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, compile_path

from surehook.api import audit, openapi, pages, tenants
from surehook.api.auth import KeyGuard, bearer
from surehook.api.codes import CODES
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.api.problems import refuse
from surehook.api.services import Services
from surehook.api.table import OPERATIONS
from surehook.api.traffic import ROUTE
from surehook.core.errors import Problem

# A route takes every method and refuses some itself: otherwise `GET /v1/events/batch` would be an event named `batch`.
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Endpoint = Callable[[Request], Awaitable[Response]]
_encode = msgspec.json.Encoder().encode


def build(services: Services) -> Starlette:
    """The application over a started engine. It has no lifespan of its own: see `Services`."""
    needs_key = frozenset() if services.metrics_open else frozenset({"/metrics"})
    signed = frozenset(operation.path for operation in OPERATIONS if operation.signed)
    app = Starlette(
        routes=[*_operation_routes(services), *_page_routes()],
        middleware=[Middleware(KeyGuard, keys=services.keys, needs_key=needs_key, signed=signed)],
        exception_handlers={HTTPException: _not_routed},
    )
    # A path with a slash more is another path; Starlette has no argument for that choice.
    app.router.redirect_slashes = False
    return app


# -- routes -------------------------------------------------------------------------------------------------


def _operation_routes(services: Services) -> list[Route]:
    """One route for each path, so that a wrong method is answered with all the right ones; fixed paths before patterns."""
    by_path: dict[str, list[Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, []).append(operation)
    return [
        Route(path, _methods(services, by_path[path]), methods=METHODS, name=by_path[path][0].name)
        for path in sorted(by_path, key=lambda path: ("{" in path, path))
    ]


def _methods(services: Services, operations: list[Operation]) -> Endpoint:
    by_method = {operation.method: operation for operation in operations if operation.handle is not None}
    if "GET" in by_method:
        by_method["HEAD"] = by_method["GET"]

    async def endpoint(request: Request) -> Response:
        request.scope[ROUTE] = operations[0].path
        operation = by_method.get(request.method)
        if operation is None:
            raise HTTPException(405)
        return await _answered(operation, services, request)

    return endpoint


async def _answered(operation: Operation, services: Services, request: Request) -> Response:
    """Answer one call. No exception but a cancellation leaves this function."""
    try:
        asked = await operation.read(services, request)
        given = await _given(operation, services, asked)
        await tenants.judge_empty(asked, given)
        audit.tell(operation, asked, given, request)
        if isinstance(given.value, bytes):
            return Response(given.value, media_type=METRICS_TYPE)
        if given.value is None:
            return Response(status_code=given.status, headers=given.headers)
        return Response(_encode(given.value), given.status, given.headers, "application/json")
    except ClientDisconnect:
        return Response(status_code=400)  # nobody is there to read it
    except Exception as error:
        return refuse(error, changes=operation.method != "GET")


async def _given(operation: Operation, services: Services, asked: ApiRequest) -> ApiAnswer:
    assert operation.handle is not None
    if not operation.lists_rows:
        return await operation.handle(asked)
    tenant = asked.query.get("tenant", "")
    if tenant not in services.engine.directory.tenants:
        tenant = ""
    async with services.lists.turn(bearer(asked.caller) or b"", tenant):
        return await operation.handle(asked)


def _page_routes() -> list[Route]:
    async def document(request: Request) -> Response:
        return Response(openapi.document_bytes(), media_type="application/json")

    async def docs(request: Request) -> Response:
        return HTMLResponse(pages.docs(), headers=pages.HEADERS)

    async def problem(request: Request) -> Response:
        code = request.path_params["code"]
        if code not in CODES:
            return refuse(_missing())
        return HTMLResponse(pages.problem(code), headers=pages.HEADERS)

    return [
        Route("/openapi.json", document),
        Route("/docs", docs),
        Route("/problems/{code}", problem),
    ]


# -- what no route takes ------------------------------------------------------------------------------------


async def _not_routed(request: Request, error: Any) -> Response:
    if error.status_code == 405:
        allowed = ", ".join(sorted(_allowed(request.url.path)))
        detail = f"{request.method} is not possible here"
        hint = f"possible: {allowed}"
        return refuse(Problem("method_not_allowed", detail, hint=hint, status=405), {"allow": allowed})
    return refuse(_missing())


def _allowed(path: str) -> set[str]:
    """The methods of the most exact path of the table that fits, those answered in front included."""
    fitting = [operation for operation in OPERATIONS if compile_path(operation.path)[0].match(path)]
    fixed = [operation for operation in fitting if operation.path == path] or fitting
    methods = {operation.method for operation in fixed} or {"GET"}
    return methods | {"HEAD"} if "GET" in methods else methods


def _missing() -> Problem:
    return Problem("not_found", "there is nothing at this address", hint="/docs lists every call", status=404)
