"""The product's HTTP API as the benches use it to set scenes and to ask; not a path that is measured."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import quote, urlencode

from surehook.core.errors import SurehookError

TIMEOUT_S = 30.0  # of one call; under full load the management API waits its turn


class Refused(SurehookError):
    """The server answered a scene-setting call with something else than success."""


class Api:
    """A blocking client on one kept connection."""

    def __init__(self, port: int, key: str) -> None:
        self.port = port
        self.key = key
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)

    def raw(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Status and body of one call. Raises OSError where nobody answers."""
        try:
            return self._raw(method, path, body)
        except http.client.RemoteDisconnected as error:
            if method != "GET":
                raise OSError(f"{method} {path}: {error!r}") from error
            return self._raw(method, path, body)  # the server had closed the idle connection

    def _raw(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        data = json.dumps(body).encode() if body is not None else None
        headers = {"authorization": f"Bearer {self.key}", "content-type": "application/json"}
        try:
            self._connection.request(method, path, data, headers)
            response = self._connection.getresponse()
            return response.status, response.read()
        except http.client.RemoteDisconnected:
            self._connection.close()
            raise
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next call makes a new one
            raise OSError(f"{method} {path}: {error!r}") from error

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """The decoded answer of a call that must succeed."""
        status, answer = self.raw(method, path, body)
        if not 200 <= status < 300:
            raise Refused(f"{method} {path}: {status} {answer.decode(errors='replace')[:500]}")
        return json.loads(answer) if answer else None

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def ready(self) -> bool:
        """True where /readyz says yes."""
        try:
            return self.raw("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def tenant(self, id_: str) -> None:
        """Make a tenant."""
        self.call("POST", "/v1/tenants", {"id": id_, "name": id_})

    def endpoint(self, tenant: str, url: str, types: list[str], policy: Any = None) -> str:
        """Make an endpoint; its id."""
        body: dict[str, Any] = {"tenant": tenant, "url": url, "event_types": types}
        if policy is not None:
            body["policy"] = policy
        return cast(str, self.call("POST", "/v1/endpoints", body)["id"])

    def set_status(self, endpoint: str, status: str) -> None:
        """Pause or activate an endpoint."""
        self.call("PATCH", f"/v1/endpoints/{endpoint}", {"status": status})

    def lanes(self) -> list[dict[str, Any]]:
        """Both lanes and what stands in them."""
        return cast(list[dict[str, Any]], self.call("GET", "/v1/lanes")["data"])

    def pages(self, path: str, **filters: str) -> Iterator[dict[str, Any]]:
        """All rows of a list, page by page."""
        query = {"limit": "200", **filters}
        while True:
            page = self.call("GET", f"{path}?{urlencode(query)}")
            yield from page["data"]
            if not page.get("next"):
                return
            query["cursor"] = page["next"]

    def open_breakers(self) -> int:
        """Count breakers that let nothing, or one probe, through."""
        return sum(row["state"] != "closed" for row in self.pages("/v1/breakers"))

    def attempts(self, delivery: str) -> list[dict[str, Any]]:
        """A delivery's history, oldest first."""
        rows = list(self.pages(f"/v1/deliveries/{quote(delivery)}/attempts"))
        return sorted(rows, key=lambda row: (row["number"], row["started_at"]))

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics by its full name, labels included; empty where there is none."""
        status, body = self.raw("GET", "/metrics")
        samples: dict[str, float] = {}
        if status == 200:
            for line in body.decode().splitlines():
                if line and not line.startswith("#"):
                    name, _, value = line.rpartition(" ")
                    samples[name] = float(value)
        return samples
