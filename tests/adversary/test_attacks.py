"""Every attack on both ledgers: memory stays bounded, and the customer beside it is served as before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.adversary.arena import Arena, arena
from tests.adversary.conftest import keep
from tests.servers import Postgres

pytestmark = [pytest.mark.slow, pytest.mark.adversary]

SLOW = {"profile": "standard", "breaker": None}
HASTY = {**SLOW, "schedule": {"fixed": [0.01] * 30}, "jitter": None}


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request: pytest.FixtureRequest) -> Iterator[Arena]:
    """A fresh server for each attack."""
    computing = request.node.get_closest_marker("computing") is not None
    with (
        _ledger(request) as url,
        arena(url, tell=lambda figures: keep(request.node, figures), computing=computing) as made,
    ):
        yield made


@contextmanager
def _ledger(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    server: Postgres = request.getfixturevalue("postgres")
    with server.database() as url:
        yield url


@pytest.mark.alone
@pytest.mark.parametrize("attack", ["nested", "schemas"])
def test_what_is_costly_to_read_takes_turns(scene: Arena, attack: str) -> None:
    scene.withstands(attack)


@pytest.mark.computing
@pytest.mark.parametrize("attack", ["previews", "scrapes"])
def test_what_is_costly_to_answer_takes_turns(scene: Arena, attack: str) -> None:
    scene.withstands(attack)


@pytest.mark.computing
def test_events_that_are_costly_to_judge_take_turns(scene: Arena) -> None:
    schema = {"uniqueItems": True, "items": {"uniqueItems": True}}
    scene.api.call("POST", "/v1/event-types", {"name": "loud.judged", "schema": schema})
    scene.withstands("judged")


@pytest.mark.computing
def test_a_flood_of_batches_is_its_own_tenants_trouble(scene: Arena) -> None:
    scene.loud_endpoints("/ok", 1)
    scene.withstands("batches")


@pytest.mark.computing
def test_batches_that_are_broken_at_their_end_are_their_callers_trouble(scene: Arena) -> None:
    scene.loud_endpoints("/ok", 1)
    scene.withstands("broken_batches")


@pytest.mark.alone
def test_batches_to_a_thousand_endpoints_take_turns_with_others(scene: Arena) -> None:
    scene.loud_endpoints("/d/200", 1_000)
    scene.withstands("wide", events=500)


# What is longest prepared comes next, or the others would wait for it at the end.
def test_large_events_owed_to_thousands_of_endpoints_are_their_own_trouble(scene: Arena) -> None:
    scene.loud_endpoints("/d/1500", 5_000, SLOW)
    scene.withstands("owed", pad=255_000, events=20)


def test_a_caller_who_changes_descriptions_in_a_loop_holds_nobody_up(scene: Arena) -> None:
    scene.loud_endpoints("/ok", 2_000)
    endpoints = [row["id"] for row in scene.api.pages("/v1/endpoints", tenant="loud")]
    scene.withstands("changes", endpoints=endpoints)


@pytest.mark.parametrize("attack", ["header_lines", "header_value", "long_url", "trailers", "slow_readers"])
def test_bytes_without_an_end_cost_nobody_anything(scene: Arena, attack: str) -> None:
    scene.withstands(attack)


@pytest.mark.parametrize("attack", ["half_heads", "silent"])
def test_thousands_of_idle_connections_leave_room_for_others(scene: Arena, attack: str) -> None:
    scene.withstands(attack, connections=4_300)


def test_what_costs_more_to_read_than_to_send_is_read_a_little_at_a_time(scene: Arena) -> None:
    scene.withstands("tiny_chunks")


@pytest.mark.parametrize("path", ["/healthz", "/docs", "/openapi.json"])
def test_requests_by_the_thousand_in_one_write_are_answered_one_by_one(scene: Arena, path: str) -> None:
    scene.withstands("pipelined", path=path)


def test_nothing_is_kept_of_events_that_are_refused(scene: Arena) -> None:
    scene.withstands("refused")


def test_wrong_keys_are_refused_and_nothing_more(scene: Arena) -> None:
    scene.withstands("wrong_keys")


def test_half_sent_batches_are_bounded_in_bytes(scene: Arena) -> None:
    scene.withstands("half_bodies", connections=200)


def test_64_mib_owed_to_one_slow_receiver_is_its_own_trouble(scene: Arena) -> None:
    scene.loud_endpoints("/d/1500", 1, SLOW)
    scene.withstands("owed", pad=20_000, events=3_300)


def test_retries_without_a_pause_are_their_own_tenants_trouble(scene: Arena) -> None:
    scene.loud_endpoints("/status/500", 5, HASTY)
    scene.withstands("hasty", rate=20)


def test_test_calls_to_receivers_that_hang_take_nothing_from_deliveries(scene: Arena) -> None:
    scene.loud_endpoints("/d/50000", 20, {**SLOW, "timeouts": {"first": 60, "retry": 60}})
    endpoints = [row["id"] for row in scene.api.pages("/v1/endpoints", tenant="loud")]
    scene.withstands("test_calls", endpoints=endpoints, connections=2_300)
