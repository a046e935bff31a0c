"""The hot door: POST /v1/events and /v1/events/batch, straight on ASGI in front of the application.

Routing, dependency injection and response models cost more than the whole decoding of an event, so the two
ingest routes do without them. The application answers everything else, the OpenAPI document included.
"""

from __future__ import annotations

import mmap
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from surehook.api import problems
from surehook.api.auth import KeyRing, authorization_of, key_in_query
from surehook.api.turns import READ, SMALL_COST, TurnScheduler
from surehook.api.turnstile import Turnstile
from surehook.core import envelope, idempotency, ids, json_pieces, limits
from surehook.core.envelope import EventIn
from surehook.core.errors import LedgerError, Problem, let_go
from surehook.core.steps import SLICE_COST, Steps
from surehook.delivery.waiting import as_problem
from surehook.ports.ledger import Taken

Message = MutableMapping[str, Any]
Scope = Message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Cost of reading one event of a batch and of judging it, beside its bytes and the steps of its schema (core/steps.py).
ITEM_COST, JUDGE_COST = 2 * 1024, 512

# With more commas than one in so many bytes, most are not between events.
DENSE_BYTES = 8

# Up to so many bytes an event is cheap whatever it holds: at most a tenth of a millisecond, for nested lists.
GLANCE_BYTES = 1024

PROBES = frozenset({"/healthz", "/readyz"})  # cheap, and their callers have little patience
JSON_TYPE = (b"content-type", b"application/json")


class IntakeEngine(Protocol):
    """The engine, as far as ingest needs it."""

    def now(self) -> int: ...
    async def take(self, events: Sequence[EventIn], keys: Sequence[str | None]) -> list[Taken | Problem]: ...
    def refuses(self, event: EventIn) -> Problem | None: ...
    def weight(self, event: EventIn) -> int: ...
    async def current(self) -> None: ...
    @property
    def retention_ms(self) -> int: ...


class Ingest:
    """ASGI: the two ingest routes, and `app` for everything else."""

    def __init__(
        self,
        app: App,
        *,
        engine: IntakeEngine,
        keys: KeyRing,
        refresh_keys: Callable[[], Awaitable[None]],
        turns: TurnScheduler,
    ) -> None:
        self._app = app
        self._engine = engine
        self._keys = keys
        self._refresh_keys = refresh_keys
        self._turns = turns
        self._turnstile = Turnstile()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = scope["path"]
            if scope["method"] == "POST":
                if path == "/v1/events":
                    return await self._answer(self._one, scope, receive, send)
                if path == "/v1/events/batch":
                    return await self._answer(self._batch, scope, receive, send)
            if path not in PROBES:
                authorization = authorization_of(scope)
                await self._turnstile.passed(authorization if self._keys.admits(authorization) else None)
        return await self._app(scope, receive, send)

    async def _answer(
        self,
        route: Callable[[bytes | None, Any, bytes], Awaitable[bytes]],
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        try:
            limit = limits.EVENT_BODY_BYTES if route == self._one else limits.BATCH_BODY_BYTES
            key = await self._check(scope, limit)
            content = await route(key, await _body(receive, limit), authorization_of(scope) or b"")
        except Exception as error:  # the last resort: any error becomes a problem, never a traceback
            await _refuse(scope, send, error)
            return
        scope[problems.STATUS] = 202
        headers = [JSON_TYPE, (b"content-length", b"%d" % len(content))]
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def _check(self, scope: Scope, limit: int) -> bytes | None:
        """Authenticate the caller and return the Idempotency-Key; a body announced as longer than `limit` is refused unread.
        Raises Problem."""
        if scope["query_string"]:
            problem = key_in_query(scope, self._keys)
            if problem is not None:
                raise problem
        authorization = key = None
        twice = False
        announced = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                # Two readers could each take another one for the key: two headers count as none.
                authorization = value if authorization is None else b""
            elif name == b"content-length":
                announced = value
            elif name == b"idempotency-key":
                twice = key is not None
                key = value
            elif name == b"content-encoding" and value.strip().lower() not in (b"", b"identity"):
                raise Problem("unsupported_encoding", "bodies are read uncompressed", status=415)
        if not self._keys.admits(authorization):
            await self._refresh_keys()
            if not self._keys.admits(authorization):
                raise Problem(
                    "unauthorized", "no valid API key", hint="Authorization: Bearer <key>", status=401
                )
        if scope["query_string"]:
            raise Problem("unknown_parameter", "this call has no query parameters")
        if twice:
            raise Problem("invalid_idempotency_key", "the header is given twice", field="Idempotency-Key")
        if announced.isdigit() and int(announced[:20]) > limit:
            raise _too_large(limit)
        return key

    async def _one(self, key: bytes | None, raw: bytes, caller: bytes) -> bytes:
        checked = None if key is None else idempotency.check_key(key.decode("latin-1"))
        reading = READ * len(raw)
        if len(raw) <= GLANCE_BYTES:
            event = envelope.decode_event(raw)
        else:
            reading = max(reading, json_pieces.cost(raw))
            event = await self._turns.run(caller, envelope.decode_event_in_steps(raw), cost=reading)
        judging = self._cost(event)
        if reading + judging <= SMALL_COST:
            self._turns.passed()
        # The answer is made from this very refusal: memory may know better later.
        refusal = self._judge(event) if judging <= SMALL_COST else await self._judge_in_turn(event, caller)
        if refusal is not None:
            await self._engine.current()
            refusal = await self._judge_in_turn(event, caller)
            if refusal is not None:
                raise refusal
        (answer,) = await self._engine.take((event,), (checked,))
        if type(answer) is Taken and answer.problem is None:
            return _taken(answer)
        raise _problem(answer, event, checked)

    async def _batch(self, key: bytes | None, raw: bytes | memoryview, caller: bytes) -> bytes:
        if key is not None:
            raise Problem(
                "idempotency_key_not_here", "a batch has no key of its own", field="Idempotency-Key",
                hint="give each item its idempotency_key",
            )  # fmt: skip
        items = await self._turns.run(caller, _decoding(raw), cost=_cost_of_batch(raw))
        del raw  # events hold their data; nothing more is kept while they wait for their commit
        judged = await self._judged(items, caller)
        if any(isinstance(each, Problem) for each in judged):
            await self._engine.current()
            judged = await self._judged(items, caller)
        events = [each for each in judged if not isinstance(each, Problem)]
        keys = [event.idempotency_key for event in events]
        answers = await self._engine.take(events, keys) if events else ()
        refused = len(judged) - sum(type(each) is Taken and each.problem is None for each in answers)
        answering = _answering(judged, answers)
        return await self._turns.run(caller, answering, cost=ITEM_COST * refused, begins=False)

    async def _judge_in_turn(self, event: EventIn, caller: bytes) -> Problem | None:
        return await self._turns.once(
            _line(caller, event), partial(self._judge, event), cost=self._cost(event)
        )

    async def _judged(self, items: Sequence[EventIn | Problem], caller: bytes) -> list[EventIn | Problem]:
        """Each event, or the reason to refuse it."""
        costs = [0 if isinstance(item, Problem) else self._cost(item) for item in items]
        line = _line(caller, next((item for item in items if not isinstance(item, Problem)), None))
        return await self._turns.run(line, self._judging(items, costs), cost=sum(costs))

    def _cost(self, event: EventIn) -> int:
        """Cost of judging an event: a step of its schema is half the unit of costs."""
        return JUDGE_COST + min(self._engine.weight(event) // 2, SLICE_COST)

    def _judging(
        self, items: Sequence[EventIn | Problem], costs: Sequence[int]
    ) -> Steps[list[EventIn | Problem]]:
        judged: list[EventIn | Problem] = []
        for item, cost in zip(items, costs, strict=True):
            judged.append(item if isinstance(item, Problem) else self._judge(item) or item)
            yield cost
        return judged

    def _judge(self, event: EventIn) -> Problem | None:
        """The reason to refuse an event, as far as memory knows: tenant, type, schema, the time in its id."""
        if event.id is not None:
            try:
                idempotency.check_event_id(
                    event.id, now_ms=self._engine.now(), retention_ms=self._engine.retention_ms
                )
            except Problem as problem:
                let_go(problem)
                return problem
        return self._engine.refuses(event)


def _decoding(raw: bytes | memoryview) -> Steps[list[EventIn | Problem]]:
    """Decode the events of a batch in steps; yields the cost of each."""
    items: list[EventIn | Problem] = []
    for item in (yield from envelope.split_in_steps(raw)):
        items.append(
            envelope.decode_item(item)
            if len(item) <= json_pieces.PIECE
            else (yield from envelope.decode_item_in_steps(item))
        )
        yield ITEM_COST + len(item)
    return items


def _line(caller: bytes, first: EventIn | None) -> bytes:
    """The line in which events wait to be judged: by caller and tenant, since one key may serve many tenants. The first
    event of a batch decides."""
    return caller if first is None else b"%b %b" % (caller, first.tenant.encode())


def _cost_of_batch(raw: bytes | memoryview) -> int:
    """Cost of reading a batch; of one that is mostly commas, also the cost of a refusal for each item."""
    cost = READ * len(raw)
    if len(raw) <= SMALL_COST // READ and (commas := bytes(raw).count(b",")) > len(raw) // DENSE_BYTES:
        cost += ITEM_COST * commas
    return cost


def _answering(judged: Sequence[EventIn | Problem], answers: Sequence[Taken | Problem]) -> Steps[bytes]:
    """The answer to a batch; `answers` belong to those events that were not refused before."""
    parts: list[bytes] = []
    rest = iter(answers)
    for each in judged:
        if isinstance(each, Problem):
            problem = each
        else:
            answer = next(rest)
            if type(answer) is Taken and answer.problem is None:
                parts.append(_taken(answer))
                continue
            problem = _problem(answer, each, each.idempotency_key, key_field="idempotency_key")
        parts.append(_problem_bytes(problem))
        yield ITEM_COST
    return b"[" + b",".join(parts) + b"]"


def _taken(answer: Taken) -> bytes:
    return f'{{"id":"{ids.text(ids.EVENT, answer.event)}","deliveries":{answer.fan_out}}}'.encode()


def _problem(
    answer: Taken | Problem, event: EventIn, key: str | None, *, key_field: str = "Idempotency-Key"
) -> Problem:
    if isinstance(answer, Problem):
        return answer
    if answer.problem == "idempotency_conflict":
        return idempotency.conflict(key or "", field=key_field)
    if answer.problem == "event_id_conflict":
        return idempotency.id_conflict()
    return Problem("unstorable", f"the ledger cannot store this event of type {event.type}")


def _problem_bytes(problem: Problem) -> bytes:
    return msgspec.json.encode(problems.shape(problem))


async def _body(receive: Receive, limit: int) -> bytes | memoryview:
    """The whole body, at most `limit` bytes. Raises Problem `body_too_large` as soon as it is longer.

    A large body is put together as it comes, in memory that is allocated as it is written: joining eight MiB at the end
    held the loop for four to twenty milliseconds, most of them page faults.
    """
    parts, size, is_last = list[bytes](), 0, False
    large: mmap.mmap | None = None
    while not is_last:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem("invalid_json", "the connection ended before the body did", status=400)
        part = message.get("body", b"")
        is_last = not message.get("more_body", False)
        size += len(part)
        if size > limit:
            raise _too_large(limit)
        if large is not None:
            large.write(part)
            continue
        parts.append(part)
        if size > limits.EVENT_BODY_BYTES:
            large = mmap.mmap(-1, limit, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            for each in parts:
                large.write(each)
            parts.clear()
    if large is not None:
        return memoryview(large)[:size]
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limit: int) -> Problem:
    return Problem("body_too_large", f"the body has more than {limit} bytes", status=413)


async def _refuse(scope: Scope, send: Send, error: Exception) -> None:
    refusal = problems.refusal(as_problem(error) if isinstance(error, LedgerError) else error)
    scope[problems.PROBLEM], scope[problems.STATUS] = refusal.shape.code, refusal.status
    scope[problems.OF_LEDGER] = problems.of_ledger(error)
    let_go(error)
    status, headers, content = refusal.rendered()
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
