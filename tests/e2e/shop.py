"""A server, a receiver and a caller, and the moves that most tests begin with."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from lab.bench.server import KEY, Launch, Server
from tests.e2e.calling import Caller, until
from tests.e2e.receivers import Receiver, Reply, Spot

FINISHED = ("delivered", "dead", "dropped", "cancelled")
QUICK = {"schedule": {"fixed": [0.2, 0.2, 0.2]}, "jitter": None}  # a policy for tests: three short waits


class Shop:
    """`surehook serve` on a SQLite file of its own, as a stranger meets it."""

    def __init__(self, folder: Path, command: tuple[str, ...] = (), **settings: str) -> None:
        self.folder = folder
        self.server = Server(Launch(folder=folder, command=command, settings=settings))
        self.receiver = Receiver()
        self.api = Caller(self.server.port, KEY)
        self._names = count(1)

    def start(self) -> None:
        """Start the server, on the ledger of its last life where it had one, and wait until it is ready."""
        self.api.close()
        self.server.start()
        self.server.wait_ready()

    def close(self) -> None:
        """Stop everything."""
        self.receiver.closing.set()  # whoever hangs lets go, so that the server need not wait for its grace time
        self.api.close()
        self.server.stop()
        self.server.api.close()
        self.receiver.close()

    @property
    def database(self) -> Path:
        """The ledger's file."""
        return self.folder / "surehook.db"

    @property
    def log(self) -> str:
        """What the server has written so far."""
        return self.server.log.read_text(errors="replace")

    # -- things -----------------------------------------------------------------------------------------

    def tenant(self) -> str:
        """A new tenant, so that tests on one server do not see each other."""
        name = f"tenant-{next(self._names)}"
        self.api.post("/v1/tenants", {"id": name, "name": name}, 201)
        return name

    def endpoint(self, tenant: str, url: str, **fields: Any) -> Any:
        """A new endpoint for everything."""
        return self.api.post(
            "/v1/endpoints", {"tenant": tenant, "url": url, "event_types": ["*"], **fields}, 201
        )

    def publish(self, tenant: str, **fields: Any) -> str:
        """An event; its id."""
        event = {"tenant": tenant, "type": "document.signed", "data": {"n": 1}, **fields}
        return str(self.api.post("/v1/events", event, 202)["id"])

    def deliveries(self, event: str) -> list[Any]:
        """An event's deliveries."""
        return list(self.api.pages(f"/v1/events/{event}/deliveries"))

    def delivery(self, event: str) -> Any:
        """An event's one delivery."""
        (delivery,) = self.deliveries(event)
        return delivery

    def reaches(self, delivery: str, *states: str, seconds: float = 10.0) -> Any:
        """A delivery once it is in one of the states."""

        def look() -> Any:
            found = self.api.get(f"/v1/deliveries/{delivery}")
            return found if found["state"] in states else None

        return until(look, f"{delivery} {states}", seconds)

    def finished(self, event: str, seconds: float = 10.0) -> Any:
        """An event's one delivery at its end."""
        return self.reaches(self.delivery(event)["id"], *FINISHED, seconds=seconds)

    def attempts(self, delivery: str) -> list[Any]:
        """A delivery's history, oldest first."""
        rows = list(self.api.pages(f"/v1/deliveries/{delivery}/attempts"))
        return sorted(rows, key=lambda row: (row["number"], row["started_at"]))

    def play(self, *replies: Reply | int, policy: Any = None, **fields: Any) -> tuple[Spot, Any, str]:
        """One event to one endpoint that answers so: the receiver's spot, the endpoint, the event's id."""
        tenant, spot = self.tenant(), self.receiver.spot(*replies)
        endpoint = self.endpoint(tenant, spot.url, policy=QUICK if policy is None else policy)
        return spot, endpoint, self.publish(tenant, **fields)

    def notices(self, tenant: str, kind: str | None = None) -> list[Any]:
        """A tenant's notices, newest first."""
        return list(self.api.pages("/v1/notices", tenant=tenant, **({} if kind is None else {"kind": kind})))
