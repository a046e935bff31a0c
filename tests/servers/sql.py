"""PostgreSQL's simple query protocol in one function: no driver, no event loop, so that fixtures work anywhere.

https://www.postgresql.org/docs/current/protocol-message-formats.html; the private servers trust loopback.
"""

from __future__ import annotations

import socket
import struct

Row = tuple[str | None, ...]


class SqlError(Exception):
    """What the server refused, in its own words; `code` is the SQLSTATE."""

    def __init__(self, fields: dict[str, str]) -> None:
        super().__init__(f"{fields.get('C')}: {fields.get('M')}")
        self.code = fields.get("C", "")


def ask(
    port: int, query: str, *, database: str = "postgres", user: str = "postgres", seconds: float = 60.0
) -> list[Row]:
    """Run statements on a connection of their own; the rows of all of them, as text. OSError if nobody answers."""
    with (
        socket.create_connection(("127.0.0.1", port), timeout=seconds) as wire,
        wire.makefile("rb") as answers,
    ):
        start = b"".join(word.encode() + b"\0" for word in ("user", user, "database", database)) + b"\0"
        wire.sendall(struct.pack("!ii", len(start) + 8, 196608) + start)
        _until_ready(answers)
        text = query.encode() + b"\0"
        wire.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
        rows = _until_ready(answers)
        wire.sendall(b"X" + struct.pack("!i", 4))
    return rows


def _until_ready(answers: object) -> list[Row]:
    rows: list[Row] = []
    error: SqlError | None = None
    while True:
        head = answers.read(5)  # type: ignore[attr-defined]
        if len(head) < 5:
            raise error or ConnectionResetError("the server closed the connection")
        kind, length = head[:1], struct.unpack("!i", head[1:])[0]
        body: bytes = answers.read(length - 4)  # type: ignore[attr-defined]
        if kind == b"Z":
            if error is not None:
                raise error
            return rows
        if kind == b"E":
            error = SqlError({part[:1].decode(): part[1:].decode() for part in body.split(b"\0") if part})
        elif kind == b"D":
            rows.append(_row(body))


def _row(body: bytes) -> Row:
    at, cells = 2, []
    for _ in range(struct.unpack("!h", body[:2])[0]):
        size = struct.unpack("!i", body[at : at + 4])[0]
        at += 4
        cells.append(None if size < 0 else body[at : at + size].decode())
        at += max(0, size)
    return tuple(cells)
