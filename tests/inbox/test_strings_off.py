"""PostgreSQL with `standard_conforming_strings = off`, as a role or a database may have it from an older time.

psycopg then wrote arrays of bytes with each backslash twice, and stored the text of an id where the id belongs.
"""

from __future__ import annotations

import pytest
from sqlalchemy import make_url

from surehook.inbox import Backoff
from surehook.inbox.sql.bulk import byte_array
from tests import servers
from tests.inbox.house import known_as_quick
from tests.inbox.test_documents import table

ODD = "a\\b 'c' \\x41 \\\\ \"d\""


@pytest.fixture(params=["sync", "async", pytest.param("django", marks=pytest.mark.slow)])
def ground(request, ground_of):
    kind, url = ground_of("postgresql", request.param)
    servers.postgres().ask(f'alter database "{make_url(url).database}" set standard_conforming_strings = off')
    return kind, url


def test_what_is_stored_is_what_came(houses, caplog):
    house = houses(backoff=Backoff(attempts=1))
    house.inbox.follow(table(), "partner", "document.*")

    def fails(event):
        if event.type == "other":
            raise RuntimeError(ODD)

    seen = house.on(fails)
    known_as_quick(house.inbox)
    for event_id, kind in (("evt_1", "document.sent"), ("evt_2", "other"), ("evt_3", "more")):
        assert house.receive(event_id, kind, document="doc_1", n=1, text=ODD).status == 200
    assert house.receive("evt_1", "document.sent", document="doc_1", n=1, text=ODD).status == 200, "a repeat"
    assert house.work() == 1, "nothing is claimed anew"
    assert house.states() == {"evt_1": "finalized", "evt_2": "dead", "evt_3": "finalized"}
    assert {event.body["text"] for event in seen} == {ODD}
    (event,) = house.events(id="evt_2")
    (tried,) = house.do(house.inbox.show(event.ref)).tries
    assert tried.message == ODD
    assert house.do(house.inbox.replay(reason=ODD, id="evt_3")) == 1
    house.work()
    assert house.states()["evt_3"] == "finalized" and len(seen) == 4


def test_an_array_of_bytes_is_written_as_the_database_reads_it():
    assert byte_array([b"\x00\\'\"", None, b""]) == '{"\\\\x005c2722",NULL,"\\\\x"}'
