"""The receiver behind `surehook listen`."""

from __future__ import annotations

import asyncio
import errno
import random
import signal
import sys
import time
from collections.abc import Sequence
from datetime import datetime

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode
from msgspec.json import format as pretty

from surehook.cli.errors import USAGE, CommandError
from surehook.cli.inputs import policy_of
from surehook.cli.output import ApiObject, line, note, paint
from surehook.client import Client, Refused, Unreachable
from surehook.core.verification import Verifier, VerifyError
from surehook.demo.receiver import Behaviour, HttpReceiver, HttpReply, HttpRequest

HOST = "127.0.0.1"  # a tool for this machine, never for a network


class Registration(Struct, frozen=True):
    """An endpoint of the server for the time of listening."""

    server_url: str
    key: str | None
    tenant: str
    events: str
    policy: str | None

    def create(self, target: str) -> tuple[str, str]:
        """Returns the endpoint's id and secret. Raises Refused, Unreachable."""
        fields: ApiObject = {} if self.policy is None else {"policy": policy_of(self.policy)}
        with Client(self.server_url, self.key, patience_s=0) as client:
            made = client.endpoints.create(
                tenant=self.tenant,
                url=target,
                event_types=[name.strip() for name in self.events.split(",") if name.strip()],
                description="surehook listen",
                **fields,
            )
        return made.id, str(made.secret)

    def delete(self, endpoint: str) -> None:
        try:
            with Client(self.server_url, self.key, patience_s=0) as client:
                client.endpoints.delete(endpoint)
        except (Refused, Unreachable) as error:
            note(f"endpoint {endpoint} could not be deleted: {error}")


class Listener:
    """Listens until SIGINT or SIGTERM."""

    def __init__(
        self, port: int, path: str, behaviour: Behaviour, *, secrets: Sequence[str], body: bool, json: bool
    ) -> None:
        self._port = port
        self._path = path
        self._behaviour = behaviour
        self._body = body
        self._json = json
        self._verifier = _verifier(secrets)
        self.received = 0

    def run(self, registration: Registration | None) -> None:
        asyncio.run(self._run(registration))

    async def _run(self, registration: Registration | None) -> None:
        receiver = HttpReceiver(self._answer)
        port = await self._start(receiver)
        target = f"http://{HOST}:{port}{self._path}"
        endpoint = None
        try:
            if registration is not None:
                # In a thread of its own: the server may call us before it answers.
                endpoint, secret = await asyncio.to_thread(registration.create, target)
                self._verifier = _verifier([secret])
            self._greet(target, endpoint)
            await _interrupted()
            note(f"\n{self.received} received")
        finally:
            if registration is not None and endpoint is not None:
                await asyncio.to_thread(registration.delete, endpoint)
            await receiver.stop()

    async def _start(self, receiver: HttpReceiver) -> int:
        try:
            return await receiver.start(HOST, self._port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise CommandError(
                f"port {self._port} of {HOST} is taken",
                hint=f"name another one: surehook listen {self._port + 1}{self._path}",
                code=USAGE,
            ) from None

    def _greet(self, target: str, endpoint: str | None) -> None:
        note(paint(f"listening on {target}", "bold", sys.stderr) + "  (Ctrl-C ends it)")
        if endpoint is not None:
            note(f"  endpoint  {endpoint}, deleted when this ends")
        if self._verifier is None:
            note("  signatures are not verified: give --secret, or --create")
        if self._behaviour != Behaviour():
            b = self._behaviour
            how = "never answers" if b.hangs else f"{b.status} after {b.delay_s:g} s, {b.flaky:.0%} failing"
            note(f"  behaves    {how}")

    async def _answer(self, request: HttpRequest) -> HttpReply:
        self.received += 1
        refusal = self._refusal(request)
        if refusal is not None:
            reply = _refused(refusal)
        elif request.path.partition("?")[0] != self._path:
            reply = HttpReply(404)
        elif request.method not in ("POST", "PUT", "PATCH"):
            reply = HttpReply(405)
        else:
            reply = self._behaviour.reply(random.random())
        self._print(request, reply, refusal)
        return reply

    def _refusal(self, request: HttpRequest) -> VerifyError | None:
        if self._verifier is None:
            return None
        try:
            self._verifier.verify(request.headers, request.body, now=time.time())
        except VerifyError as error:
            return error
        return None

    def _print(self, request: HttpRequest, reply: HttpReply, refusal: VerifyError | None) -> None:
        verdict = "unchecked" if self._verifier is None else "verified" if refusal is None else refusal.code
        event = _event(request.body)
        if self._json:
            line(encode(_document(request, reply, verdict, event)).decode())
            sys.stdout.flush()
            return
        out = sys.stdout
        colour = "red" if refusal is not None else "green" if verdict == "verified" else "yellow"
        answer = "no answer" if reply.status is None else str(reply.status)
        after = f" after {reply.delay_s:g} s" if reply.delay_s else ""
        again = " replay" if request.header("webhook-replay") == "1" else ""
        line(
            f"{datetime.now().astimezone():%H:%M:%S.%f}"[:-3]
            + f"  {paint(str(event.get('type') or f'{request.method} {request.path}'), 'bold', out)}"
            + f"  {request.header('webhook-id') or '–'}"
            + f"  attempt {request.header('webhook-attempt') or '–'}{again}"
            + f"  {paint(verdict, colour, out)}  → {answer}{after}"
        )
        if refusal is not None and refusal.hint:
            line(f"    {refusal.hint}")
        if self._body and "data" in event:
            for text in pretty(encode(event["data"]), indent=2).decode().splitlines():
                line(f"    {text}")
        sys.stdout.flush()


def split_place(written: str) -> tuple[int, str]:
    """`4000/hooks` to port and path; either may be missing."""
    port, slash, path = written.partition("/")
    if not ((port.isascii() and port.isdigit() and int(port) <= 65_535) or port == ""):
        raise CommandError(f"{written!r} is not PORT/PATH", hint="such as 4000/hooks", code=USAGE)
    return int(port or 4000), slash + path if slash else "/"


def _verifier(secrets: Sequence[str]) -> Verifier | None:
    if not secrets:
        return None
    try:
        return Verifier(list(secrets))
    except VerifyError as error:
        raise CommandError(f"--secret: {error.detail}", hint=error.hint, code=USAGE) from None


def _refused(error: VerifyError) -> HttpReply:
    """The answer that docs/delivery-contract.md asks of receivers: the sender spends no retry on trouble with the key."""
    problem = {
        "type": "about:blank",
        "title": error.public,
        "status": error.status,
        "code": error.public_code,
        "retryable": error.retryable,
    }
    return HttpReply(error.status, encode(problem), "application/problem+json")


def _event(body: bytes) -> ApiObject:
    try:
        event = decode(body)
    except (DecodeError, UnicodeDecodeError):
        return {}
    return event if isinstance(event, dict) else {}


def _document(request: HttpRequest, reply: HttpReply, verdict: str, event: ApiObject) -> ApiObject:
    return {
        "at": datetime.now().astimezone().isoformat(timespec="milliseconds"),
        "method": request.method,
        "path": request.path,
        "headers": {name.lower(): value for name, value in request.headers},
        "verdict": verdict,
        "status": reply.status,
        "delay_s": reply.delay_s,
        "event": event or None,
        "body": None if event else request.body.decode(errors="backslashreplace"),
    }


async def _interrupted() -> None:
    """Wait for SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    try:
        await told.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
