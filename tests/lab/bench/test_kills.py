"""A server is started again only when the receiver has read what the killed one had sent."""

import random
import types

import pytest

from lab.bench import kills
from lab.bench.records import Count
from lab.bench.stage import BenchFailed, Silent


class Scene:
    """A server and a receiver that still reads from `late` connections after the kill; writes down what is done."""

    def __init__(self, late):
        self.done, self.late = [], late
        self.say, self.sink = Silent(), types.SimpleNamespace(count=self.count)
        self.api = types.SimpleNamespace(lanes=lambda: [{"in_flight": 2}])
        self.server = types.SimpleNamespace(
            kill=lambda: self.done.append("kill") or 1,
            start=lambda: self.done.append("start"),
            started_ns=2,
            wait_ready=lambda: 0.1,
        )

    def count(self):
        self.done.append(f"open: {1 + self.late}")
        said = Count(requests=9, answered=9, duplicated=0, last_ns=3, by_path={}, connections=1 + self.late)
        self.late -= self.late > 0
        return said


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(kills, "UPTIME_S", (0, 0))
    monkeypatch.setattr(kills, "RECOVERY_S", 0.05)


def test_a_start_waits_for_what_the_dead_process_sent():
    scene = Scene(late=2)
    kills._kill(scene, random.Random(1), 0, 1)
    assert scene.done[:5] == ["kill", "open: 3", "open: 2", "open: 1", "start"]


def test_connections_that_stay_open_are_told():
    scene = Scene(late=10**6)
    with pytest.raises(BenchFailed, match="connections of a killed server were open"):
        kills._kill(scene, random.Random(1), 0, 1)
    assert "start" not in scene.done
