"""The changes since a version, read from the rows of `queries/changes.sql`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from surehook.core.model import Endpoint, Secret
from surehook.ledgers import changes as notes
from surehook.ledgers.common import values

_NOTE, _ENDPOINT, _SECRET = slice(1, 4), slice(4, 21), slice(21, 27)


class Difference(NamedTuple):
    """The notes, and the endpoints they name that still exist, with their secrets, oldest first."""

    noted: notes.ChangedRows
    endpoints: tuple[Endpoint, ...]
    secrets: tuple[Secret, ...]


def read(rows: Sequence[Any], *, since: int, limit: int) -> Difference | None:
    """Read the changes; None if the notes do not explain every version.

    A note has a row for each secret of its endpoint, and an endpoint may be noted several times.
    """
    # (version, kind, key), each once, in order.
    distinct = list(dict.fromkeys([tuple(row[_NOTE]) for row in rows if row[1] is not None]))
    noted = notes.read(distinct, since=since, newest=rows[0][0], limit=limit)
    if noted is None:
        return None
    wanted = set(noted.endpoints)
    endpoints: dict[bytes, object] = {}
    secrets: dict[bytes, object] = {}
    for row in rows:
        endpoint, secret = row[4], row[21]
        if endpoint in wanted:
            endpoints.setdefault(endpoint, row)
            if secret is not None:
                secrets.setdefault(secret, row)
    return Difference(
        noted,
        tuple([values.endpoint(row[_ENDPOINT]) for row in _sorted(endpoints)]),
        tuple([values.secret(row[_SECRET]) for row in _sorted(secrets)]),
    )


def _sorted(rows: dict[bytes, object]) -> Iterable[Any]:
    return [rows[id] for id in sorted(rows)]
