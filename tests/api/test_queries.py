"""Query parameters and cursors."""

from __future__ import annotations

import pytest

from surehook.api import cursors
from surehook.core.errors import Problem
from tests.api.house import START, House

ON_SQLITE = True

# query, code, field
BAD = [
    ("/v1/deliveries?stat=dead", "unknown_parameter", "stat"),
    ("/v1/deliveries?limit=50&State=dead", "unknown_parameter", "State"),
    ("/v1/lanes?tenant=a", "unknown_parameter", "tenant"),
    ("/healthz?x=1", "unknown_parameter", "x"),
    ("/v1/deliveries?state=dead&state=dead", "repeated_parameter", "state"),
    ("/v1/deliveries?tenant=a&ten%61nt=b", "repeated_parameter", "tenant"),
    ("/v1/deliveries?limit=1&limit=1", "repeated_parameter", "limit"),
    ("/v1/deliveries?limit=0", "bad_parameter", "limit"),
    ("/v1/deliveries?limit=201", "bad_parameter", "limit"),
    ("/v1/deliveries?limit=1000000000", "bad_parameter", "limit"),
    ("/v1/deliveries?limit=-1", "bad_parameter", "limit"),
    ("/v1/deliveries?limit=1.0", "bad_parameter", "limit"),
    ("/v1/deliveries?limit=", "bad_parameter", "limit"),
    ("/v1/deliveries?limit=%D9%A3", "bad_parameter", "limit"),
    ("/v1/deliveries?state=ded", "bad_parameter", "state"),
    ("/v1/deliveries?state=", "bad_parameter", "state"),
    ("/v1/deliveries?outcome=lost", "bad_parameter", "outcome"),
    ("/v1/events?idempotency_key=one", "bad_parameter", "tenant"),
    ("/v1/deliveries?status=99", "bad_parameter", "status"),
    ("/v1/deliveries?status=2xx", "bad_parameter", "status"),
    ("/v1/dead-letters?error=late", "bad_parameter", "error"),
    ("/v1/dead-letters?code=" + "c" * 65, "bad_parameter", "code"),
    ("/v1/deliveries?correlation_id=", "bad_parameter", "correlation_id"),
    ("/v1/deliveries?endpoint=ep_1", "bad_id", "endpoint"),
    ("/v1/deliveries?endpoint=dlv_01kjpy44e0en7af0atmc01c0vf", "bad_id", "endpoint"),
    ("/v1/deliveries?type=a%20b", "invalid_event_type", "type"),
    ("/v1/deliveries?tenant=", "bad_parameter", "tenant"),
    ("/v1/deliveries?tenant=" + "a" * 65, "bad_parameter", "tenant"),
    ("/v1/deliveries?tenant=a%00", "bad_text", "tenant"),
    ("/v1/deliveries?tenant=%ff", "bad_text", "tenant"),
    ("/v1/deliveries?tenant=%ed%a0%80", "bad_text", "tenant"),
    ("/v1/deliveries?since=yesterday", "bad_time", "since"),
    ("/v1/deliveries?since=2026-02-30T00:00:00Z", "bad_time", "since"),
    ("/v1/deliveries?until=1969-12-31T23:59:59Z", "bad_time", "until"),
    ("/v1/deliveries?cursor=", "bad_cursor", "cursor"),
    ("/v1/deliveries?cursor=abc", "bad_cursor", "cursor"),
    ("/v1/deliveries?cursor=" + "A" * 27, "bad_cursor", "cursor"),
    ("/v1/deliveries?cursor=" + "A" * 4000, "bad_cursor", "cursor"),
    ("/v1/deliveries?cursor=%F0%9F%92%A9", "bad_cursor", "cursor"),
    ("/v1/endpoints?status=enabled", "bad_parameter", "status"),
    ("/v1/notices?kind=dead", "bad_parameter", "kind"),
    ("/v1/events?subject=" + "s" * 257, "bad_parameter", "subject"),
    ("/v1/events?subject=" + "s" * 9000, "bad_parameter", None),
    ("/v1/dead-letters?state=dead", "unknown_parameter", "state"),
]


@pytest.mark.parametrize(("path", "code", "field"), BAD, ids=lambda value: str(value)[:48])
def test_a_bad_query_is_a_422_with_its_parameter(
    house: House, path: str, code: str, field: str | None
) -> None:
    response = house.call("GET", path)
    problem = response.json()

    assert (response.status_code, problem["code"], problem["field"]) == (422, code, field), problem


def test_hints_name_what_was_meant(house: House) -> None:
    assert house.call("GET", "/v1/deliveries?stat=dead").json()["hint"] == "did you mean state?"
    assert house.call("GET", "/v1/deliveries?state=deid").json()["hint"] == "did you mean dead?"
    plus = "/v1/deliveries?since=2026-03-02T09:30:00+02:00"
    assert house.call("GET", plus).json()["hint"] == "write + as %2B, or use Z"


@pytest.mark.parametrize("limit", [1, 2, 3, 200])
def test_pages_hold_every_row_once_newest_first(house: House, limit: int) -> None:
    house.tenant()
    endpoint = house.endpoint()
    made = []
    for _ in range(7):
        house.engine.clock.at += 1
        made.append(house.publish(endpoint)[1][0])
    seen, cursor = [], ""
    while True:
        page = house.get(f"/v1/deliveries?tenant=acme&limit={limit}{cursor}")
        seen += [row["id"] for row in page["data"]]
        assert len(page["data"]) <= limit
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"

    assert seen == made[::-1]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/tenants",
        "/v1/event-types",
        "/v1/endpoints",
        "/v1/events",
        "/v1/notices",
        "/v1/policies",
        "/v1/breakers",
    ],
)
def test_every_list_has_pages(house: House, path: str) -> None:
    from surehook.delivery.managing import BreakerView

    for n in range(3):
        house.tenant(f"t{n}")
        house.post("/v1/event-types", {"name": f"type.{n}"}, 201)
        house.publish(house.endpoint(f"t{n}"), tenant=f"t{n}")
        house.notice("delivery.dead", START + n)
    house.engine.views = [
        BreakerView("acme", f"https://h/{n}", "open", "failures", 1, 1, 600.0, START, START, ())
        for n in range(3)
    ]
    whole = house.get(f"{path}?limit=200")["data"]
    seen, cursor = [], ""
    for _ in whole:
        page = house.get(f"{path}?limit=1{cursor}")
        seen += page["data"]
        cursor = f"&cursor={page['next']}"

    assert seen == whole and page["next"] is None and len(whole) >= 3


def test_a_cursor_belongs_to_its_list_and_its_filters(house: House) -> None:
    house.tenant()
    endpoint = house.endpoint()
    for _ in range(3):
        house.publish(endpoint)
    cursor = house.get("/v1/deliveries?tenant=acme&limit=1")["next"]
    codes = {
        path: house.call("GET", f"{path}cursor={cursor}").json().get("code")
        for path in (
            "/v1/deliveries?tenant=acme&limit=2&",
            "/v1/deliveries?tenant=other&",
            "/v1/deliveries?",
            "/v1/events?tenant=acme&",
            "/v1/dead-letters?tenant=acme&",
        )
    }

    assert list(codes.values()) == [None, "bad_cursor", "bad_cursor", "bad_cursor", "bad_cursor"]


def test_every_single_change_of_a_cursor_is_refused() -> None:
    written = cursors.write(bytes(range(16)), of="/v1/events", where={"tenant": "acme"})
    assert written is not None
    assert cursors.read(written, of="/v1/events", where={"tenant": "acme"}) == bytes(range(16))

    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for place in range(len(written)):
        for char in alphabet.replace(written[place], ""):
            changed = written[:place] + char + written[place + 1 :]
            with pytest.raises(Problem):
                cursors.read(changed, of="/v1/events", where={"tenant": "acme"})


@pytest.mark.parametrize("path", ["/v1/deliveries", "/v1/dead-letters"])
def test_deliveries_are_chosen_by_what_came_of_them(house: House, path: str) -> None:
    house.tenant()
    endpoint = house.endpoint()
    made = [house.publish(endpoint, subject="s", correlation_id=name)[1][0] for name in ("one", "two")]
    for delivery, status in zip(made, (500, 503), strict=True):
        house.finish(delivery, "dead", status=status)
    (found,) = house.get(f"{path}?subject=s&correlation_id=two&status=503")["data"]

    assert (found["id"], found["subject"], found["correlation_id"]) == (made[1], "s", "two")
    for more in ("status=404", "error=timeout", "code=late", "receipt=rejected", "subject=t"):
        assert house.get(f"{path}?{more}")["data"] == []
