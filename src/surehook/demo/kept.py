"""The content of the application's database, read without the application and without the inbox."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from msgspec import Struct

WAITING = ("accepted", "held", "parked")  # a run that will be processed later

_STATES = """
select e.event_id, r.state from surehook_inbox_events e join surehook_inbox_runs r on r.event = e.id
order by r.number
"""
_EFFECTS = "select event_id, count(*) from effects group by event_id"
_EARLY = "select count(*) from surehook_inbox_steps where verdict = 'early'"
# Rows are numbered as they were committed; each move of a document has to begin where the one before it ended.
_UNORDERED = """
select count(*) from (
    select "before", lag("after") over (partition by document order by rowid) as stood from effects
) where stood <> "before"
"""
_ENDS = "select state, count(*) from surehook_inbox_documents group by state order by state"


class DatabaseContent(Struct, frozen=True):
    """Stored events and their effects.

    states     by event id: the state of its newest run
    effects    by event id: the number of rows with its effect
    early      events that came before their predecessor
    unordered  effects that do not follow from the one before them
    documents  by state: the number of documents
    """

    states: Mapping[str, str]
    effects: Mapping[str, int]
    early: int = 0
    unordered: int = 0
    documents: Mapping[str, int] = {}


NOTHING = DatabaseContent({}, {})


def look(database: Path) -> DatabaseContent:
    """Everything, as it is on disk now. Raises sqlite3.Error."""
    with closing(_open(database)) as found:
        return DatabaseContent(
            states=dict(found.execute(_STATES).fetchall()),
            effects=dict(found.execute(_EFFECTS).fetchall()),
            early=found.execute(_EARLY).fetchone()[0],
            unordered=found.execute(_UNORDERED).fetchone()[0],
            documents=dict(found.execute(_ENDS).fetchall()),
        )


def applied(database: Path) -> int:
    """Number of events that have taken effect so far; quick enough to be asked again and again."""
    with closing(_open(database)) as found:
        return int(found.execute("select count(distinct event_id) from effects").fetchone()[0])


def _open(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)
