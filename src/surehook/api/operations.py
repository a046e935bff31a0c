"""An operation, as OpenAPI calls one method of one path: a row of the table from which routes, document and tests are made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from starlette.requests import Request

from surehook.api import bodies, cursors, query
from surehook.api.auth import authorization_of
from surehook.api.query import LIMIT_DEFAULT, Parameter
from surehook.api.services import Services
from surehook.api.turns import READ
from surehook.core import ids, limits
from surehook.core.answers import ListOut
from surehook.core.errors import Problem
from surehook.core.json_value import JsonObject
from surehook.ports.registry import Page


class ApiRequest(Struct):
    """One request as a handler gets it: read and validated."""

    services: Services
    caller: bytes  # its key, as it was given
    address: str
    path: Mapping[str, str]
    query: Mapping[str, Any]
    where: Mapping[str, str]  # the filters as written: what a cursor is bound to
    body: Any = None
    headers: Sequence[tuple[str, str]] = ()  # of a signed call
    limit: int = LIMIT_DEFAULT
    after: bytes | None = None

    def id(self, prefix: str, what: str) -> bytes:
        """The id in the path. One that cannot exist is not found, like one that does not."""
        raw = ids.try_parse(prefix, self.path["id"])
        if raw is None:
            other = ids.other_kind(prefix, self.path["id"])
            raise Problem("not_found", other or f"there is no {what} with this id", status=404)
        return raw

    def page(self, page: Page, show: Callable[[Any], object]) -> ApiAnswer:
        """One page of a list."""
        return self.rows([show(value) for value in page.data], page.next)

    def rows(self, data: list[Any], following: bytes | None) -> ApiAnswer:
        """A list of shapes and the position after it."""
        return ApiAnswer(ListOut(data, cursors.write(following, of=self.address, where=self.where)))

    def query_filters(self) -> JsonObject:
        """The parameters of the query that select rows."""
        return {name: value for name, value in self.query.items() if name not in ("limit", "cursor")}


class ApiAnswer(Struct):
    value: object
    status: int = 200
    headers: dict[str, str] | None = None


Handler = Callable[[ApiRequest], Awaitable[ApiAnswer]]


class Operation(Struct, frozen=True, kw_only=True):
    """One method of one path.

    answers     status to shape (None: no content); a list's shape is that of its members
    problems    codes this call can answer with, beside those that every call can
    is_kept     the list is kept in memory, or counted: it waits for no turn among those that read rows of the ledger
    signed      its signature is the proof: the handler gets the body as bytes, and the headers
    handle      None: answered in front of the application (the ingest routes), documented here
    """

    method: str
    path: str
    name: str
    about: str
    answers: Mapping[int, object]
    handle: Handler | None = None
    body: type[Struct] | None = None
    body_limit: int = limits.MANAGEMENT_BODY_BYTES
    body_optional: bool = False
    query: tuple[Parameter, ...] = ()
    is_list: bool = False
    is_kept: bool = False
    problems: tuple[str, ...] = ()
    needs_key: bool = True
    signed: bool = False
    detail: str = ""

    @property
    def lists_rows(self) -> bool:
        """It waits for its turn: see `list_turns.py`."""
        return self.is_list and not self.is_kept

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return (*self.query, *query.PAGED) if self.is_list else self.query

    async def read(self, services: Services, request: Request) -> ApiRequest:
        """Read and validate a request: query first, then the body. Raises Problem."""
        if any("\0" in text for text in request.path_params.values()):
            raise Problem("not_found", "there is nothing by this name", status=404)
        values, texts = query.parse(request.scope["query_string"], self.parameters)
        asked = ApiRequest(
            services=services,
            caller=authorization_of(request.scope) or b"",
            address=request.url.path,
            path=request.path_params,
            query=values,
            where=query.filters(texts),
        )
        if self.is_list:
            asked.limit = values.get("limit", LIMIT_DEFAULT)
            if "cursor" in values:
                asked.after = cursors.read(values["cursor"], of=asked.address, where=asked.where)
        if self.body is not None:
            data = await bodies.read(request, limit=self.body_limit)
            if self.signed:
                asked.body, asked.headers = data, request.headers.items()
            else:
                asked.body = await services.turns.run(
                    asked.caller,
                    bodies.decode(data, self.body, empty=self.body_optional),
                    cost=READ * len(data),
                )
        return asked
