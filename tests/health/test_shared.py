"""What every store of shared health does, on the model and on real servers."""

from __future__ import annotations

import asyncio

from surehook.core.breaker import BUCKETS
from surehook.ports.health import BUSY_MS, BreakerUpdate, Counted

NOW = 1_790_000_000_000
WINDOW = 600_000
BUCKET = WINDOW // BUCKETS
A, B = b"a" * 16, b"b" * 16
KEY = "https://a.example:443/hook"


def counted(calls, failures, *, at=NOW, key=KEY):
    return Counted("acme", key, WINDOW, ((at * BUCKETS // WINDOW, calls, failures),))


def opened(*, at=NOW, reason="failures", again=False, key=KEY):
    return BreakerUpdate("acme", key, "open", reason, at, at + 300_000, at, again)


def closed(*, at=NOW, again=False, key=KEY):
    return BreakerUpdate("acme", key, "closed", None, at, 0, at, again)


def hastened(*, to):
    return BreakerUpdate("acme", KEY, "open", "failures", NOW, to, NOW, hastened=True)


async def say(health, node=A, *, counts=(), updates=(), busy=(), since=0, now=NOW):
    return await health.exchange(node=node, counted=counts, updates=updates, busy=busy, since=since, now=now)


def only(word):
    (view,) = word.views
    return view


async def test_counts_of_all_nodes_add_up(health):
    first = only(await say(health, A, counts=[counted(3, 1)]))
    assert (first.calls, first.failures, first.state, first.generation) == (3, 1, "closed", 0)
    second = only(await say(health, B, counts=[counted(5, 5)]))
    assert (second.calls, second.failures) == (8, 6)


async def test_what_left_the_window_counts_no_more(health):
    await say(health, A, counts=[counted(3, 1)])
    just = only(await say(health, B, counts=[counted(1, 0)], now=NOW + WINDOW - BUCKET))
    assert just.calls == 4
    gone = only(await say(health, B, counts=[counted(1, 0, at=NOW + WINDOW)], now=NOW + WINDOW))
    assert (gone.calls, gone.failures) == (1, 0)


async def test_tenants_and_urls_are_counted_apart(health):
    other = Counted("beta", KEY, WINDOW, ((NOW * BUCKETS // WINDOW, 2, 2),))
    word = await say(health, counts=[counted(3, 1), other, counted(7, 0, key="https://b.example:443/")])
    assert sorted((v.tenant, v.key, v.calls) for v in word.views) == [
        ("acme", "https://a.example:443/hook", 3),
        ("acme", "https://b.example:443/", 7),
        ("beta", "https://a.example:443/hook", 2),
    ]


async def test_an_opening_is_learnt_by_everybody_who_asks(health):
    await say(health, A, updates=[opened(reason="key")])
    view = only(await say(health, B))
    assert (view.state, view.reason, view.opened_at, view.probe_at) == ("open", "key", NOW, NOW + 300_000)
    assert view.generation > 0


async def test_of_two_openings_the_first_holds(health):
    await say(health, A, updates=[opened()])
    view = only(await say(health, B, updates=[opened(at=NOW + 400)], now=NOW + 400))
    assert view.opened_at == NOW


async def test_trouble_with_the_key_is_news_for_an_open_breaker(health):
    await say(health, A, updates=[opened()])
    view = only(await say(health, B, updates=[opened(at=NOW + 400, reason="key")], now=NOW + 400))
    assert (view.reason, view.opened_at) == ("key", NOW + 400)


async def test_closing_forgets_the_window_and_raises_the_generation(health):
    await say(health, A, counts=[counted(30, 30)], updates=[opened()])
    before = only(await say(health, B)).generation
    view = only(await say(health, A, updates=[closed(at=NOW + 5)], now=NOW + 5))
    assert view.state == "closed"
    assert view.generation > before
    assert only(await say(health, B, counts=[counted(1, 1)], now=NOW + 5)).calls == 1


async def test_changes_are_told_once_they_are_behind(health):
    await say(health, A, updates=[opened()])
    since = (await say(health, B)).since
    assert (await say(health, B, since=since)).views, "clocks differ: recent changes are told again"
    await say(health, A, updates=[opened(at=NOW + 60_000, key="https://b.example:443/")], now=NOW + 60_000)
    word = await say(health, B, since=since, now=NOW + 60_000)
    word = await say(health, B, since=word.since, now=NOW + 60_000)
    assert [view.key for view in word.views] == ["https://b.example:443/"]


async def test_one_node_is_the_probe(health):
    await say(health, A, updates=[opened()])
    due = NOW + 300_000
    ask = {"until": due + 20_000, "now": due}
    assert not await health.take_probe("acme", KEY, node=A, until=due, now=due - 1), "not due yet"
    assert sorted(
        await asyncio.gather(*(health.take_probe("acme", KEY, node=node, **ask) for node in (A, B)))
    ) == [False, True]


async def test_the_probe_itself_may_ask_again_and_others_when_it_is_overdue(health):
    await say(health, A, updates=[opened()])
    due = NOW + 300_000
    assert await health.take_probe("acme", KEY, node=A, until=due + 20_000, now=due)
    assert await health.take_probe("acme", KEY, node=A, until=due + 20_000, now=due + 1)
    assert not await health.take_probe("acme", KEY, node=B, until=due + 40_000, now=due + 19_999)
    assert await health.take_probe("acme", KEY, node=B, until=due + 40_000, now=due + 20_000)


async def test_only_the_probe_opens_an_open_breaker_again(health):
    await say(health, A, updates=[opened()])
    due = NOW + 300_000
    await health.take_probe("acme", KEY, node=A, until=due + 20_000, now=due)
    assert only(await say(health, B, updates=[opened(at=due)], now=due)).opened_at == NOW
    assert only(await say(health, A, updates=[opened(at=due + 9)], now=due + 9)).opened_at == due + 9
    assert not await health.take_probe("acme", KEY, node=B, until=due + 40_000, now=due + 10), "not due again"


async def test_a_hastened_breaker_is_probed_sooner_by_anybody_and_everybody_learns_of_it(health):
    before = only(await say(health, A, updates=[opened()]))
    own = only(await say(health, B, updates=[hastened(to=NOW + 40)], now=NOW + 50))
    heard = only(await say(health, A, now=NOW + 60))
    assert own == heard
    assert heard.generation > before.generation
    assert (heard.state, heard.opened_at, heard.probe_at, heard.author) == ("open", NOW, NOW + 40, A.hex())
    assert not await health.take_probe("acme", KEY, node=A, until=NOW + 9_000, now=NOW + 39)
    assert await health.take_probe("acme", KEY, node=A, until=NOW + 9_000, now=NOW + 60)


async def test_hastening_puts_no_probe_off_and_takes_nobodys_right(health):
    await say(health, A, updates=[opened()])
    due = NOW + 300_000
    assert await health.take_probe("acme", KEY, node=A, until=due + 20_000, now=due)
    assert only(await say(health, B, updates=[hastened(to=due + 9)], now=due)).probe_at == due
    assert only(await say(health, B, updates=[hastened(to=due - 9)], now=due)).probe_at == due - 9
    assert not await health.take_probe("acme", KEY, node=B, until=due + 20_000, now=due)


async def test_hastening_opens_nothing(health):
    assert only(await say(health, A, updates=[hastened(to=NOW)])).generation == 0
    await say(health, A, updates=[opened(), closed()])
    view = only(await say(health, B, updates=[hastened(to=NOW)]))
    assert (view.state, view.probe_at) == ("closed", 0)


async def test_a_closed_breaker_has_no_probe_and_an_unknown_one_may_be_probed(health):
    assert await health.take_probe("acme", KEY, node=A, until=NOW + 20_000, now=NOW)
    await say(health, A, updates=[opened(), closed()])
    assert not await health.take_probe("acme", KEY, node=A, until=NOW + 400_000, now=NOW + 300_000)


async def test_what_is_told_again_holds_only_where_it_is_newer_than_what_is_known(health):
    first = only(await say(health, A, updates=[opened(again=True)], now=NOW + 60_000))
    assert (first.state, first.generation) == ("open", NOW), "nothing was decided"
    await say(health, A, updates=[closed(at=NOW + 3)], now=NOW + 3)
    late = only(await say(health, B, updates=[opened(at=NOW + 2, again=True)], now=NOW + 4))
    assert (late.state, late.generation) == ("closed", NOW + 3)
    newer = only(await say(health, B, updates=[opened(at=NOW + 4, again=True)], now=NOW + 4))
    assert (newer.state, newer.generation, newer.author) == ("open", NOW + 4, B.hex())
    shut = only(await say(health, A, updates=[closed(at=NOW + 5, again=True)], now=NOW + 9))
    assert (shut.state, shut.generation) == ("closed", NOW + 5)


async def test_what_the_store_knows_is_never_older_than_what_it_was_told(health):
    await say(health, A, updates=[opened()])
    second = only(await say(health, B, updates=[opened(at=NOW + 400)], now=NOW + 400))
    assert (second.author, second.opened_at) == (A.hex(), NOW)
    assert second.generation > NOW + 400, "so that the second one takes it over"
    again = only(await say(health, B, updates=[opened(at=NOW + 900, again=True)], now=NOW + 900))
    assert (again.author, again.opened_at, again.generation) == (A.hex(), NOW, NOW + 900)
    closing = only(await say(health, A, updates=[closed(at=NOW + 5)], now=NOW + 5))
    assert closing.generation > NOW + 900, "a closing counts, by whatever clock"
    ahead = only(await say(health, B, updates=[opened(at=NOW + 4_000)], now=NOW + 1_000))
    assert (ahead.state, ahead.generation) == ("open", NOW + 4_000)


async def test_what_is_told_again_leaves_the_probe_to_whom_it_was_given(health):
    await say(health, A, updates=[opened()])
    due = NOW + 300_000
    ask = {"until": due + 90_000, "now": due}
    assert await health.take_probe("acme", KEY, node=A, **ask)
    await say(health, B, updates=[opened(at=due, again=True)], now=due)
    assert not await health.take_probe("acme", KEY, node=B, **ask)


async def test_sharers_are_those_who_said_so_lately(health):
    endpoint, other = b"e" * 16, b"f" * 16
    assert (await say(health, A, busy=[endpoint, other])).sharers == {endpoint: 1, other: 1}
    assert (await say(health, B, busy=[endpoint])).sharers == {endpoint: 2}
    later = NOW + BUSY_MS
    assert (await say(health, B, busy=[endpoint], now=later)).sharers == {endpoint: 1}


async def test_an_exchange_of_a_thousand_breakers_is_one_step(health):
    reports = [counted(2, 1, key=f"https://e{n}.example:443/") for n in range(1_000)]
    word = await say(health, counts=reports)
    assert len(word.views) == 1_000
    assert {(view.calls, view.failures) for view in word.views} == {(2, 1)}


async def test_names_of_any_kind_are_kept_as_they_are(health):
    key = 'https://a.example:443/"quoted"/ümlaut/%7C|pipe/\\'
    view = only(await say(health, updates=[opened(key=key)]))
    assert view.key == key
    assert only(await say(health, counts=[counted(1, 1, key=key)])).calls == 1
    assert not await health.take_probe("acme", key, node=A, until=NOW, now=NOW)


async def test_a_turn_has_one_author(health):
    assert only(await say(health, A, updates=[opened()])).author == A.hex()
    assert only(await say(health, B, updates=[opened()])).author == A.hex(), "in the same millisecond, too"
    assert only(await say(health, B, updates=[closed()])).author == B.hex()
    assert only(await say(health, A, updates=[closed()])).author == B.hex(), "it was closed already"
    assert only(await say(health, A, updates=[opened()])).author == A.hex()


# -- a clock that jumped ahead and back ---------------------------------------------------------------------

AHEAD = NOW + 7 * 86_400_000


async def test_calls_of_the_future_do_not_count(health):
    await say(health, A, counts=[counted(300, 300, at=AHEAD)], now=AHEAD)
    view = only(await say(health, B, counts=[counted(1, 0)]))
    assert (view.calls, view.failures) == (1, 0)


async def test_a_clock_that_is_a_little_ahead_counts(health):
    short = Counted("acme", KEY, 6_000, (((NOW + 1_500) * BUCKETS // 6_000, 3, 3),))
    await say(health, A, counts=[short], now=NOW + 1_500)
    view = only(await say(health, B, counts=[Counted("acme", KEY, 6_000, ())]))
    assert (view.calls, view.failures) == (3, 3)


async def test_a_breaker_that_opened_in_the_future_may_be_probed_by_one(health):
    await say(health, A, updates=[opened(at=AHEAD)], now=AHEAD)
    ask = {"until": NOW + 90_000, "now": NOW}
    assert await health.take_probe("acme", KEY, node=A, **ask)
    assert not await health.take_probe("acme", KEY, node=B, **ask)


async def test_a_probe_that_was_taken_in_the_future_is_nobodys(health):
    await say(health, A, updates=[opened(at=NOW - 600_000)], now=NOW - 600_000)
    assert await health.take_probe("acme", KEY, node=A, until=AHEAD + 90_000, now=AHEAD)
    assert await health.take_probe("acme", KEY, node=B, until=NOW + 90_000, now=NOW)


async def test_changes_are_told_although_one_lies_in_the_future(health):
    await say(health, A, updates=[opened(at=AHEAD)], now=AHEAD)
    since = (await say(health, B, now=AHEAD)).since
    other = "https://b.example:443/"
    await say(health, A, updates=[opened(key=other)])
    word = await say(health, B, since=since)
    assert other in [view.key for view in word.views]
    await say(health, A, updates=[opened(at=NOW + 60_000, key="https://c.example:443/")], now=NOW + 60_000)
    word = await say(health, B, since=word.since, now=NOW + 60_000)
    assert "https://c.example:443/" in [view.key for view in word.views]


async def test_a_sharer_of_the_future_is_none(health):
    endpoint = b"e" * 16
    await say(health, A, busy=[endpoint], now=AHEAD)
    assert (await say(health, B, busy=[endpoint])).sharers == {endpoint: 1}
