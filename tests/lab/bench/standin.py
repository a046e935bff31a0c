"""A small honest sender that speaks the part of the HTTP API the benches use; it stands in for the product.

Durable enough for kill -9: what was accepted and what was delivered goes to a file before it counts.
Faults can be asked for by name, so that the tests see the benches notice them:

    forget   every hundredth event is answered 202 and dropped     twice    every fiftieth delivery is sent again
    early    retries leave 800 ms before they are due              amnesia  no event is written, so a kill loses what waits
"""

import asyncio
import datetime
import json
import os
import pathlib
import re
import sys
import time

import msgspec
import uvloop

from surehook.core import ids

FAULTS = set(sys.argv[1:])
SLOTS = {"first": 64, "retry": 64}
ENDPOINT_SLOTS = 32
BREAKER_CALLS = 20


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="milliseconds")


class Endpoint:
    def __init__(self, row):
        self.id, self.url, self.types = row["id"], row["url"], row["event_types"]
        policy = row.get("policy") or {}
        policy = {} if isinstance(policy, str) else policy
        self.waits = policy.get("schedule", {"fixed": [1, 1, 1]})["fixed"]
        self.port, self.path = re.match(r"http://127\.0\.0\.1:(\d+)(/.*)", self.url).groups()
        # Long where answers come: a receiver without CPU for half a second would see a repeat that nobody planted.
        self.timeouts = (0.5, 1.0) if "/hang" in self.path else (10.0, 10.0)
        self.status = row.get("status", "active")
        self.idle, self.free = [], asyncio.Semaphore(ENDPOINT_SLOTS)
        self.parked, self.calls, self.failures, self.open = [], 0, 0, False

    def wants(self, type_):
        return any(
            p == "*" or p == type_ or (p.endswith(".*") and type_.startswith(p[:-1])) for p in self.types
        )


class Wire(asyncio.Protocol):
    """One connection to a receiver."""

    def connection_made(self, transport):
        self.transport, self.answer = transport, None

    def data_received(self, data):
        if self.answer is not None and not self.answer.done():
            self.answer.set_result(data)

    def connection_lost(self, error):
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionResetError())


class Sender:
    def __init__(self, path):
        self.path, self.endpoints, self.events, self.attempts = path, {}, {}, {}
        self.counts = {"in_flight": 0, "held": 0, "ready": 0, "scheduled": 0}
        self.tasks, self.sent = set(), 0
        self.loop = asyncio.get_running_loop()
        self.restore()
        self.book = open(path, "ab", buffering=0)  # noqa: SIM115 - held for life

    def write(self, row):
        if "amnesia" not in FAULTS or "endpoint" in row:
            self.book.write(json.dumps(row).encode() + b"\n")

    def restore(self):
        if not os.path.exists(self.path):
            return
        done, todo = set(), []
        for line in pathlib.Path(self.path).read_bytes().split(b"\n")[:-1]:
            row = json.loads(line)
            if "endpoint" in row:
                self.endpoints[row["endpoint"]["id"]] = Endpoint(row["endpoint"])
            elif "event" in row:
                self.events[row["event"]] = row["deliveries"]
                todo += [(row["event"], d, e, row["body"]) for d, e in row["deliveries"].items()]
            else:
                done.add(row["done"])
        for event, delivery, endpoint, body in todo:
            if delivery not in done:
                self.begin(event, delivery, self.endpoints[endpoint], body.encode())

    def accept(self, item):
        event = item.get("id") or ids.text("evt", ids.uuid7(time.time_ns() // 10**6, os.urandom(10)))
        if event in self.events:
            return {"id": event, "deliveries": len(self.events[event])}
        matching = [e for e in self.endpoints.values() if e.wants(item["type"])]
        raw = ids.parse("evt", event)
        made = {ids.text("dlv", ids.delivery_id(raw, os.urandom(6))): e.id for e in matching}
        body = json.dumps(item["data"])
        self.events[event] = made
        self.write({"event": event, "deliveries": made, "body": body})
        if "forget" not in FAULTS or len(self.events) % 100:
            for delivery, endpoint in made.items():
                self.begin(event, delivery, self.endpoints[endpoint], body.encode())
        return {"id": event, "deliveries": len(made)}

    def begin(self, event, delivery, endpoint, body):
        if endpoint.status != "active" or endpoint.open:
            endpoint.parked.append((event, delivery, endpoint, body))
            return
        task = self.loop.create_task(self.deliver(event, delivery, endpoint, body))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def deliver(self, event, delivery, endpoint, body):
        number, lane = 1, 0
        while True:
            self.counts["ready"] += 1
            async with endpoint.free:
                self.counts["ready"] -= 1
                if endpoint.open:
                    endpoint.parked.append((event, delivery, endpoint, body))
                    return
                self.counts["held"] += 1
                began = time.time()
                status, after = await self.post(
                    event, delivery, endpoint, body, number, endpoint.timeouts[lane]
                )
                self.sent += 1
                if "twice" in FAULTS and self.sent % 50 == 0:
                    await self.post(event, delivery, endpoint, body, number, 1.0)
                self.counts["held"] -= 1
            endpoint.calls += 1
            endpoint.failures += status is None or status >= 500
            if (
                endpoint.calls >= BREAKER_CALLS
                and endpoint.failures == endpoint.calls
                and "/hang" in endpoint.path
            ):
                endpoint.open = True
            ok = status is not None and 200 <= status < 300
            over = ok or number > len(endpoint.waits)
            wait = 0 if over else max(after, endpoint.waits[number - 1])
            due = time.time() + wait
            self.attempts.setdefault(delivery, []).append(
                {"number": number, "started_at": stamp(began), "next_at": None if over else stamp(due)}
            )
            if over:
                self.write({"done": delivery})
                return
            self.counts["scheduled"] += 1
            await asyncio.sleep(due - time.time() - (0.8 if "early" in FAULTS else 0))
            self.counts["scheduled"] -= 1
            number, lane = number + 1, 1

    async def post(self, event, delivery, endpoint, body, number, timeout):
        request = (
            f"POST {endpoint.path} HTTP/1.1\r\nhost: 127.0.0.1\r\nwebhook-id: {event}\r\n"
            f"webhook-delivery-id: {delivery}\r\nwebhook-attempt: {number}\r\ncontent-length: {len(body)}\r\n\r\n"
        ).encode() + body
        wire = None
        try:
            async with asyncio.timeout(timeout):
                if endpoint.idle:
                    wire = endpoint.idle.pop()
                else:
                    _, wire = await self.loop.create_connection(Wire, "127.0.0.1", int(endpoint.port))
                wire.answer = self.loop.create_future()
                wire.transport.write(request)
                answer = await wire.answer
        except (OSError, TimeoutError):
            if wire is not None:
                wire.transport.abort()
            return None, 0
        endpoint.idle.append(wire)
        after = re.search(rb"retry-after: (\d+)", answer)
        return int(answer[9:12]), int(after.group(1)) if after else 0

    # -- the API ----------------------------------------------------------------------------------

    def lanes(self):
        rows = [
            {"name": n, "slots": s, "in_flight": 0, "held": 0, "ready": 0, "scheduled": 0, "parked": 0}
            for n, s in SLOTS.items()
        ]
        rows[0].update(self.counts, parked=sum(len(e.parked) for e in self.endpoints.values()))
        return rows

    def route(self, method, path, body):
        path = path.split("?")[0]
        if (method, path) == ("POST", "/v1/events"):
            return 202, self.accept(body)
        if (method, path) == ("POST", "/v1/events/batch"):
            return 202, [self.accept(item) for item in body]
        if path == "/readyz":
            return 200, {}
        if path == "/v1/lanes":
            return 200, {"data": self.lanes(), "next": None}
        if path == "/v1/breakers":
            return 200, {"data": [{"state": "open"} for e in self.endpoints.values() if e.open], "next": None}
        if (method, path) == ("POST", "/v1/tenants"):
            return 201, body
        if (method, path) == ("POST", "/v1/endpoints"):
            row = {**body, "id": f"ep_{len(self.endpoints)}"}
            self.endpoints[row["id"]] = Endpoint(row)
            self.write({"endpoint": row})
            return 201, row
        if method == "PATCH":
            return 200, self.patch(self.endpoints[path.rsplit("/", 1)[1]], body["status"])
        if path.endswith("/attempts"):
            return 200, {"data": self.attempts.get(path.split("/")[3], []), "next": None}
        return 404, {"code": "not_found"}

    def patch(self, endpoint, status):
        endpoint.status = status
        if status == "active":
            waiting, endpoint.parked = endpoint.parked, []
            for parked in waiting:
                self.begin(*parked)
        return {"id": endpoint.id, "status": status}


class Door(asyncio.Protocol):
    sender: Sender

    def connection_made(self, transport):
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            length = re.search(rb"(?i)content-length: *(\d+)", self.buffer[:end])
            stop = end + 4 + (int(length.group(1)) if length else 0)
            if len(self.buffer) < stop:
                return
            method, path, _ = self.buffer[: self.buffer.find(b"\r\n")].decode().split(" ")
            body = self.buffer[end + 4 : stop]
            self.buffer = self.buffer[stop:]
            status, answer = self.sender.route(method, path, json.loads(body) if body else None)
            out = msgspec.json.encode(answer)
            self.transport.write(b"HTTP/1.1 %d -\r\nContent-Length: %d\r\n\r\n%b" % (status, len(out), out))


async def main():
    url = os.environ["SUREHOOK_DATABASE_URL"].removeprefix("sqlite:///")
    Door.sender = Sender(url)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Door, "127.0.0.1", int(os.environ["SUREHOOK_PORT"]))
    stop = asyncio.Event()
    loop.add_signal_handler(15, stop.set)
    await stop.wait()
    server.close()


uvloop.run(main())
