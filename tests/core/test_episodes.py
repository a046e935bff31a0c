"""Things that come again and again are told when they begin and when they are over."""

from __future__ import annotations

from surehook.core.episodes import KINDS_MOST, OTHERS, Episode, Episodes


def test_the_first_is_told_and_the_others_are_counted() -> None:
    episodes = Episodes(quiet_ms=5_000)
    begun = [episodes.met("overloaded", now=now) for now in (0, 10, 4_000, 8_000)]

    assert begun == [True, False, False, False]
    assert episodes.over(now=12_999) == []
    assert episodes.over(now=13_000) == [Episode("overloaded", 0, 8_000, 4)]
    assert episodes.over(now=99_999) == []
    assert episodes.met("overloaded", now=99_999)


def test_what_never_ends_is_told_in_between() -> None:
    episodes = Episodes(quiet_ms=5_000, longest_ms=60_000)
    for now in range(0, 60_001, 1_000):
        episodes.met("x", now=now)

    assert [episode.count for episode in episodes.over(now=60_000)] == [61]
    assert episodes.met("x", now=60_000)


def test_strangers_cannot_fill_memory_with_names() -> None:
    episodes = Episodes(quiet_ms=5_000)
    told = sum(episodes.met(f"203.0.113.{n}", now=0) for n in range(10_000))

    assert told == KINDS_MOST + 1
    counts = {episode.name: episode.count for episode in episodes.over(now=5_000)}
    assert len(counts) == KINDS_MOST + 1 and counts[OTHERS] == 10_000 - KINDS_MOST
