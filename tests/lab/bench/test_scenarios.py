"""Whole scenarios against a small stand-in for the server, sound and with planted faults.

A bench that cannot see a lost, a repeated or an early delivery would praise any server.
"""

import json
import pathlib
import sys

import pytest

from lab.__main__ import run
from lab.bench import isolation, kills, latency, lateness, throughput
from lab.bench.interruptions import passed
from lab.bench.stage import Setup

pytestmark = pytest.mark.slow
STANDIN = str(pathlib.Path(__file__).with_name("standin.py"))


def setup(*faults, seconds=1.0, still_s=15.0):
    return Setup(seconds=seconds, still_s=still_s, command=(sys.executable, STANDIN, *faults))


@pytest.mark.parametrize("name", ["single", "batch50", "fanout5"])
def test_a_sound_sender_loses_and_repeats_nothing(name):
    (result,) = throughput.run(setup(), (name,))
    assert result["scenario"] == name
    assert result["accepted"] > 0
    assert result["delivered"] == result["accepted"] * (5 if name == "fanout5" else 1)
    assert (result["lost"], result["duplicated"], result["unanswered"]) == (0, 0, 0)
    assert result["server_cpu_us"] > 0
    assert result["arrival_ms"]["p50"] > 0
    assert result["peak_memory_mb"] > 5


def test_a_fixed_rate_is_kept_and_timed():
    (result,) = latency.run(setup(), (200,))
    assert result["accepted"] == 200
    assert 0 < result["accept_ms"]["p50"] <= result["accept_ms"]["p95"] <= result["accept_ms"]["p99"]
    assert result["lost"] == 0


def test_dropped_events_are_seen():
    (result,) = latency.run(setup("forget", still_s=0.5), (200,))
    assert result["lost"] == 2


def test_repeated_requests_are_seen():
    (result,) = latency.run(setup("twice"), (200,))
    assert result["duplicated"] == 4


def test_hanging_endpoints_are_watched_until_their_breakers_are_open():
    # A slow machine, too, delivers enough in them to tell.
    base, dead = isolation.run(setup(seconds=4.0), (0, 2))
    assert base["after"]["p95_ratio"] == 1.0
    assert dead["breakers_open"] == 2
    assert dead["hanging_requests"] >= 40
    assert dead["lost"] == 0
    assert dead["before"]["p95_ratio"] is not None


def test_lateness_is_measured_against_what_the_server_announces():
    (result,) = lateness.run(setup(), peak=200)
    assert result["retries_sampled"] == 200
    assert -1 < result["lateness_ms"]["p50"] < 100
    assert result["lost"] == 0


def test_early_retries_are_seen():
    (result,) = lateness.run(setup("early"), peak=200)
    assert result["early"] == result["retries_sampled"] > 0


def test_kills_lose_nothing_where_everything_is_written_first():
    (result,) = kills.run(setup(), kills=3, rate=200)
    assert (result["kills"], result["lost"], result["unexplained_repeats"]) == (3, 0, 0)
    assert result["attempted"] == result["acknowledged"]
    assert result["first_send_s"]["max"] < 10
    assert passed(result)


def test_a_kill_that_loses_what_waits_is_seen():
    (result,) = kills.run(setup("amnesia", still_s=0.5), kills=2, rate=400)
    assert result["lost"] > 0
    assert not passed(result)


def test_the_command_prints_one_document(capfd, tmp_path):
    out = tmp_path / "results.json"
    command = ["bench", "throughput", "--seconds", "1", "--json", "--out", str(out)]
    assert run([*command, "--server", f"{sys.executable} {STANDIN}"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed == json.loads(out.read_text())
    assert [result["scenario"] for result in printed] == ["single", "batch50", "fanout5"]
    wanted = {
        "accepted_per_s",
        "delivered_per_s",
        "server_cpu_us",
        "accept_ms",
        "arrival_ms",
        "lost",
        "duplicated",
    }
    assert all(wanted <= result.keys() for result in printed)
