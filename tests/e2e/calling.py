"""A caller who knows the HTTP API's page and nothing else: the standard library's client, bytes in, bytes out."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

TIMEOUT_S = 30.0  # of one call; a server that stalls for so long has failed the test anyway
LOOK_S = 0.02  # between two looks of `until`
KEPT_S = 2.0  # how long a connection lies unused; servers close theirs after five
CROCKFORD = "0123456789abcdefghjkmnpqrstvwxyz"


class Answer:
    """Status, headers (names in small letters) and exact body of one answer."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        """The body as JSON; objects keep the order of their keys."""
        return json.loads(self.body)

    def __repr__(self) -> str:
        return f"<{self.status} {self.headers.get('content-type')} {self.body[:600]!r}>"


class Caller:
    """One kept connection to a server. `key` None calls without a key."""

    def __init__(self, port: int, key: str | None) -> None:
        self.port = port
        self.key = key
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
        self._used = 0.0

    def ask(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, headers: Any = ()
    ) -> Answer:
        """One call, whatever the answer. `body` is sent as JSON, `raw` as it is. Raises OSError where nobody answers."""
        content = raw if raw is not None else (None if body is None else json.dumps(body).encode())
        if time.monotonic() - self._used > KEPT_S:
            self._connection.close()
        try:
            self._connection.putrequest(method, path, skip_accept_encoding=True)
            if self.key is not None:
                self._connection.putheader("Authorization", f"Bearer {self.key}")
            if content is not None:
                self._connection.putheader("Content-Type", "application/json")
                self._connection.putheader("Content-Length", str(len(content)))
            for name, value in headers:
                self._connection.putheader(name, value)
            self._connection.endheaders(content)
            response = self._connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, named, response.read())
            self._used = time.monotonic()
            return answer
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next call makes a new one
            raise OSError(f"{method} {path}: {error!r}") from error

    def get(self, path: str, **query: Any) -> Any:
        """The body of a GET that succeeds."""
        return self._good(self.ask("GET", f"{path}?{urlencode(query)}" if query else path), 200)

    def post(self, path: str, body: Any = None, status: int = 200, **more: Any) -> Any:
        """The body of a POST that ends as expected."""
        return self._good(self.ask("POST", path, body, **more), status)

    def patch(self, path: str, body: Any) -> Any:
        """The body of a PATCH that succeeds."""
        return self._good(self.ask("PATCH", path, body), 200)

    def delete(self, path: str) -> None:
        """A DELETE that succeeds."""
        answer = self.ask("DELETE", path)
        assert answer.status == 204 and answer.body == b"", answer

    def refused(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """The problem of a call that is refused, checked to have the shape that every problem has."""
        answer = self.ask(method, path, body, **more)
        assert answer.status >= 400, answer
        assert answer.headers["content-type"] == "application/problem+json", answer
        problem = answer.json
        check_problem(problem)
        assert problem["status"] == answer.status, answer
        return problem

    def pages(self, path: str, **query: Any) -> Iterator[Any]:
        """Every row of a list, page by page."""
        while True:
            page = self.get(path, **query)
            yield from page["data"]
            if page["next"] is None:
                return
            query["cursor"] = page["next"]

    def close(self) -> None:
        """Hang up."""
        self._connection.close()

    @staticmethod
    def _good(answer: Answer, status: int) -> Any:
        assert answer.status == status, answer
        assert answer.headers["content-type"] == "application/json", answer
        return answer.json


def check_problem(problem: Any) -> None:
    """problem+json of the contract: these keys, in this order, of these kinds."""
    assert list(problem) == ["type", "title", "status", "code", "detail", "field", "hint"], problem
    assert problem["type"].endswith(f"/problems/{problem['code']}"), problem
    assert problem["title"] and problem["detail"], problem


def until(true: Callable[[], Any], what: str | Callable[[], str], seconds: float = 10.0) -> Any:
    """Look until something is true; its value. Fails with `what` after `seconds`."""
    end = time.monotonic() + seconds
    while True:
        found = true()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds} s: {what if isinstance(what, str) else what()}"
        time.sleep(LOOK_S)


def event_id(at_s: float, low: int = 0) -> str:
    """An event id as a publisher's own library would make it: uuid7 of that instant in sortable base32."""
    number = (int(at_s * 1000) << 80) | (0x7 << 76) | (0b10 << 62) | (low & ((1 << 62) - 1))
    return "evt_" + "".join(CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))
