"""Words that a person at a terminal can act on."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from surehook.cli.errors import explain
from surehook.client.errors import Unreachable
from tests.cli.conftest import Run
from tests.cli.fake_api import DELIVERY, ENDPOINT, EVENT, T0, attempt, delivery, endpoint, fake_api

URLS = ["http://127.0.0.1:21100/first-receiver", "http://127.0.0.1:21100/second-receiver"]


def later(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"


def test_a_wrong_server_address_is_told_by_the_option_that_was_given(surehook: Run) -> None:
    ran = surehook("tenants", "list", "--server", "127.0.0.1:21000")
    assert ran.code == 2
    assert "--server: " in ran.err
    assert "--url" not in ran.err


def test_an_overlap_beyond_the_bound_is_told_in_days(surehook: Run) -> None:
    ran = surehook("endpoints", "rotate-secret", ENDPOINT, "--overlap", "31d")
    assert ran.code == 2
    assert "--overlap is at most 30 days" in ran.err and "such as 24h or 7d" in ran.err


def test_an_endpoint_whose_secret_is_not_shown_is_not_shown_without_one(surehook: Run) -> None:
    path = f"/v1/endpoints/{ENDPOINT}"
    secrets = [{"key_id": "sec_1", "signs_until": None}]
    with fake_api(
        **{
            f"GET {path}": endpoint(),
            f"GET {path}/secrets": secrets,
            f"PATCH {path}": endpoint(status="paused"),
        }
    ) as api:
        shown = surehook("endpoints", "show", ENDPOINT, env=api.env)
        paused = surehook("endpoints", "pause", ENDPOINT, env=api.env)
    assert "paused" in paused.out
    names = [line.split()[0] for line in (shown.out + paused.out).splitlines()]
    assert "secret" not in names
    assert "secrets" in names


def test_a_url_without_its_option_is_hinted_at(surehook: Run) -> None:
    ran = surehook("endpoints", "update", ENDPOINT, "https://new.example")
    assert ran.code == 2
    assert "--target URL" in ran.err


@pytest.mark.parametrize("width", [60, 80])
def test_a_narrow_list_of_endpoints_tells_urls_of_one_host_apart(surehook: Run, width: int) -> None:
    with fake_api(**{"GET /v1/endpoints": [endpoint(url=url) for url in URLS]}) as api:
        ran = surehook("endpoints", "list", env=api.env | {"COLUMNS": str(width)})
    assert all(url in ran.out for url in URLS)


def test_narrow_settings_are_blocks_with_their_names_whole(surehook: Run) -> None:
    ran = surehook("config", "show", env={"COLUMNS": "60"})
    lines = ran.out.splitlines()
    assert "database_url" in lines
    assert max(map(len, lines)) <= 60


def test_waiting_ends_where_the_next_attempt_is_beyond_it_and_says_where_and_when(surehook: Run) -> None:
    waiting = delivery(due_at=later(300), outcome="unreachable", unknown=False)
    with fake_api(
        **{
            "POST /v1/events": {"id": EVENT, "deliveries": 1},
            f"GET /v1/events/{EVENT}/deliveries": [waiting],
        }
    ) as api:
        ran = surehook("send", "a.b", "--tenant", "acme", "--wait", "40s", env=api.env)
    assert ran.code == 7
    assert len([asked for asked in api.asked if asked.startswith("GET")]) == 1
    assert "tried again in " in ran.err
    assert ENDPOINT in ran.err


def test_an_attempt_that_was_held_up_says_for_how_long(surehook: Run) -> None:
    path = f"/v1/deliveries/{DELIVERY}"
    first = attempt(next_at="2026-11-21T10:46:05.000Z")
    second = attempt(id="att_2", number=2, started_at="2026-11-21T10:46:20.000Z")
    with fake_api(**{f"GET {path}": delivery(attempts=2), f"GET {path}/attempts": [second, first]}) as api:
        ran = surehook("deliveries", "show", DELIVERY, env=api.env)
    assert "held  15s longer" in ran.out


def test_a_notice_about_an_endpoint_names_the_endpoint(surehook: Run) -> None:
    entry = {
        "id": "ntc_1", "at": T0, "kind": "endpoint.disabled", "tenant": "acme", "endpoint": ENDPOINT,
        "delivery": DELIVERY, "detail": "answered 410",
    }  # fmt: skip
    with fake_api(**{"GET /v1/notices": [entry]}) as api:
        ran = surehook("notices", "list", env=api.env)
    assert ENDPOINT in ran.out
    assert DELIVERY not in ran.out


def test_a_server_that_stands_still_is_told_from_none() -> None:
    still = explain(Unreachable("http://a", "no answer within 5 s", maybe_done=False))
    absent = explain(Unreachable("http://a", "connection refused", maybe_done=False))
    assert "stands still or is overloaded" in str(still[1]) and "surehook doctor" in str(still[1])
    assert "surehook serve" in str(absent[1]) and "stands still" not in str(absent[1])


def test_an_address_in_the_wrong_place_is_told_where_it_belongs(surehook: Run) -> None:
    ran = surehook("endpoints", "update", ENDPOINT, "https://new.example/in")
    assert ran.code == 2
    assert "an endpoint's new address is `endpoints update ENDPOINT --target URL`" in ran.err


def test_a_delivery_that_waits_for_credentials_says_so(surehook: Run) -> None:
    values = {
        f"GET /v1/deliveries/{DELIVERY}": delivery(state="parked", reason="key", due_at=None),
        f"GET /v1/deliveries/{DELIVERY}/attempts": [],
    }
    with fake_api(**values) as api:
        ran = surehook("deliveries", "show", DELIVERY, env=api.env)
    assert "refuses the signature or the credentials" in ran.out


@pytest.mark.parametrize(
    ("flags", "whose"), [((), "(without a tenant)"), (("--tenant", "acme"), "of tenant acme")]
)
def test_a_document_without_a_history_is_named_with_its_tenant(
    surehook: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...], whose: str
) -> None:
    (tmp_path / "spare_inbox.py").write_text(
        "from surehook.inbox import Inbox, sources\n"
        "inbox = Inbox('sqlite:///inbox.db', [sources.named('surehook', secret='whsec_' + 'A' * 32)])\n"
        "inbox.create_tables()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "spare_inbox", raising=False)  # another folder's
    ran = surehook("inbox", "explain", "spare_inbox:inbox", "c1", *flags)
    assert ran.code == 4
    assert f"the inbox knows no document c1 {whose}" in ran.err
