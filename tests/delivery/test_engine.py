"""The engine from the outside: what is accepted is sent, recorded, retried, parked and woken as promised."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from surehook.core import envelope, ids
from surehook.core.errors import CommitUnknown, LedgerUnavailable, NodeEvicted
from surehook.core.model import RETRY
from surehook.delivery.settings import EngineSettings
from surehook.ports.ledger import Taken
from surehook.ports.reading import NoticeFilter
from surehook.ports.transport import Answer
from tests.delivery.house import HANGS, REFUSES, House, answers, in_house

A, B = "https://a.example/hook", "https://b.example/hook"
SHORT = {"profile": "standard", "schedule": {"fixed": [2, 4]}, "jitter": None, "breaker": None}


def test_an_accepted_event_is_sent_signed_and_recorded() -> None:
    async def story(house: House) -> None:
        await house.endpoint()
        (taken,) = await house.publish()
        await house.wait(1)
        (call,) = house.receivers.calls
        assert call.headers["webhook-id"] == ids.text(ids.EVENT, taken.event)
        assert call.headers["webhook-attempt"] == "1"
        assert call.headers["webhook-retry-count"] == "0"
        assert await house.states() == {"delivered": 1}
        (view,) = await house.deliveries()
        assert [entry.outcome for entry in await house.story(view)] == ["delivered"]

    in_house(story)


def test_one_event_goes_to_every_endpoint_that_wants_its_type() -> None:
    async def story(house: House) -> None:
        await house.endpoint(A, types=("doc.*",))
        await house.endpoint(B, types=("other",))
        (taken,) = await house.publish()
        assert taken.fan_out == 1
        await house.wait(1)
        assert [call.url for call in house.receivers.calls] == [A]

    in_house(story)


def test_events_of_one_moment_are_listed_in_the_order_they_came() -> None:
    async def story(house: House) -> None:
        event = envelope.decode_event(b'{"tenant":"acme","type":"a","data":1}')
        taken = await house.engine.take([event] * 1000, [None] * 1000)
        made = [answer.event for answer in taken if isinstance(answer, Taken)]
        assert len(made) == 1000
        assert made == sorted(made)

    in_house(story)


def test_a_repeat_of_a_key_is_answered_the_same_and_sent_once() -> None:
    async def story(house: House) -> None:
        await house.endpoint()
        first = await house.publish(key="k1")
        again = await house.publish(key="k1")
        assert (again[0].event, again[0].fan_out) == (first[0].event, first[0].fan_out)
        other = await house.publish(key="k1", n=7)
        assert other[0].problem == "idempotency_conflict"
        await house.wait(1)
        assert len(house.receivers.calls) == 1

    in_house(story)


def test_a_failed_attempt_is_retried_at_its_time_and_not_before() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        await house.endpoint(policy=SHORT)
        await house.publish()
        await house.wait(20)
        starts = [call.at for call in house.receivers.calls]
        gaps = [round(after - before - 0.01, 3) for before, after in itertools.pairwise(starts)]
        assert [2.0 <= gap <= 2.05 for gap in gaps[:1]] == [True]
        assert [4.0 <= gap <= 4.05 for gap in gaps[1:]] == [True]
        assert await house.states() == {"dead": 1}
        assert "delivery.dead" in await house.notices()
        assert [call.headers["webhook-attempt"] for call in house.receivers.calls] == ["1", "2", "3"]
        assert len({call.request.body for call in house.receivers.calls}) == 1

    in_house(story)


def test_a_first_attempt_is_short_and_a_retry_is_patient() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=3.0)
        await house.endpoint()
        await house.publish()
        await house.wait(30)
        assert [call.timeout_s for call in house.receivers.calls] == [2.0, 15.0]
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_a_slow_endpoint_goes_straight_to_the_patient_lane_once_it_is_known() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=3.0)
        endpoint = await house.endpoint()
        for _ in range(12):
            await house.publish()
            await house.wait(6)
        await house.wait(30)
        assert house.route(endpoint).pace.is_slow
        before = len(house.receivers.calls)
        await house.publish()
        await house.wait(10)
        (call,) = house.receivers.calls[before:]
        assert call.timeout_s == 15.0

    in_house(story)


def test_an_open_breaker_parks_probes_once_and_drains_when_the_probe_succeeds() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = REFUSES
        policy = {
            "profile": "standard",
            "breaker": {"calls": 5, "probe_after": 30},
            "schedule": {"fixed": [3600]},
        }
        endpoint = await house.endpoint(policy=policy)
        await house.publish(5)
        await house.wait(1)
        assert house.route(endpoint).breaker.state == "open"
        await house.publish(50)
        await house.wait(25)
        assert len(house.receivers.calls) == 5
        assert (await house.states())["parked:breaker"] == 50
        await house.wait(10)  # the probe is due, and fails
        assert len(house.receivers.calls) == 6
        assert house.receivers.calls[-1].timeout_s == 15.0
        house.receivers.scripts[A] = answers(200)
        await house.wait(60)
        states = await house.states()
        assert states["delivered"] == 49
        assert "parked:breaker" not in states
        kinds = await house.notices()
        assert kinds.count("breaker.opened") == 1
        assert kinds.count("breaker.closed") == 1

    in_house(story)


def test_a_breaker_that_was_open_is_open_after_a_restart() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = REFUSES
        policy = {"profile": "standard", "breaker": {"calls": 5, "probe_after": 300}}
        await house.endpoint(policy=policy)
        await house.publish(5)
        await house.wait(1)
        await house.engine.stop()
        house.engine = house.another()
        await house.engine.start()
        await house.publish(3)
        await house.wait(20)
        assert len(house.receivers.calls) == 5

    in_house(story)


def test_a_paused_endpoint_parks_and_an_activated_one_drains() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint()
        await house.set(endpoint, status="paused")
        await house.publish(300)
        await house.wait(15)
        assert house.receivers.calls == []
        await house.set(endpoint, status="active")
        await house.wait(15)
        assert len(house.receivers.calls) == 300
        assert await house.states() == {"delivered": 200}  # one page of the list

    in_house(story)


def test_time_stood_paused_does_not_count_as_age() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint(
            policy={"profile": "standard", "max_age": 60, "schedule": {"fixed": [1]}}
        )
        await house.set(endpoint, status="paused")
        await house.publish()
        await house.wait(3600)
        house.receivers.scripts[A] = answers(500)
        await house.set(endpoint, status="active")
        await house.wait(20)
        assert len(house.receivers.calls) == 2

    in_house(story)


def test_age_ends_what_an_open_breaker_keeps_parked() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = REFUSES
        policy = {
            "profile": "standard", "max_age": 120, "schedule": {"fixed": [3600]},
            "breaker": {"calls": 3, "probe_after": 3600},
        }  # fmt: skip
        await house.endpoint(policy=policy)
        await house.publish(3)
        await house.wait(1)
        await house.publish(10)
        await house.wait(60)
        assert (await house.states()).get("parked:breaker") == 10
        await house.wait(90)
        assert (await house.states()).get("parked:breaker") is None
        assert (await house.states())["dead"] == 13

    in_house(story)


def test_a_probe_passes_over_what_is_past_its_age_at_once_and_does_not_park_the_rest_again_for_each() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = REFUSES
        policy = {
            "profile": "standard", "max_age": 30, "schedule": {"fixed": [3600]},
            "breaker": {"calls": 3, "probe_after": 120},
        }  # fmt: skip
        await house.endpoint(policy=policy)
        await house.publish(3)
        await house.wait(1)
        await house.publish(40)
        taken: list[int] = []
        unpark = house.ledger.unpark

        async def counted(*args: Any, **named: Any) -> Any:
            rows = await unpark(*args, **named)
            taken.append(len(rows))
            return rows

        house.ledger.unpark = counted  # type: ignore[method-assign]
        await house.wait(180)
        assert (await house.states())["dead"] == 43
        assert sum(taken) == 40  # each row once: it was ended where it was taken back

    # Nobody looks for what is past its age meanwhile.
    in_house(story, settings=EngineSettings(look_s=1_000.0))


def test_twenty_consecutive_failures_make_an_insigner_endpoint_inactive_and_nothing_is_lost() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        endpoint = await house.endpoint(policy="insigner")
        await house.publish(19)
        await house.wait(5)
        assert house.route(endpoint).status == "active"
        house.receivers.scripts[A] = answers(200)
        await house.publish()
        await house.wait(5)
        assert (await house.ledger.endpoint(endpoint)).failure_count == 0  # type: ignore[union-attr]
        house.receivers.scripts[A] = answers(500)
        await house.publish(20)
        await house.wait(5)
        assert house.route(endpoint).status == "inactive"
        assert "endpoint.disabled" in await house.notices()
        await house.publish(3)
        await house.wait(200)
        assert (await house.states())["parked:inactive"] >= 3
        house.receivers.scripts[A] = answers(200)
        await house.set(endpoint, status="active", failure_count=0, reason=None)
        await house.wait(400)
        assert await house.states() == {"delivered": 43}

    in_house(story)


def test_the_log_tells_of_a_disabled_endpoint_once_and_as_the_notice_does() -> None:
    async def story(house: House) -> None:
        late = iter(range(1, 100))
        house.receivers.scripts[A] = lambda call: answers(500, after=0.2 + 0.05 * next(late))(call)
        await house.endpoint(policy={"auto_disable": {"consecutive_failures": 3}, "breaker": None})
        await asyncio.gather(*(house.publish() for _ in range(12)))
        await house.wait(4)  # the calls that were under way then have failed as well, in windows of their own
        page = await house.ledger.notices(NoticeFilter(kind="endpoint.disabled"), limit=9, after=None)
        assert [one.detail for one in page.data] == ["inactive after 3 consecutive failures"]
        told = [detail for name, detail in house.facts.details if name == "endpoint.disabled"]
        assert told == [one.detail for one in page.data]
        assert house.engine.watch.notices["endpoint.disabled"] == 1

    in_house(story)


def test_enter_failure_keeps_the_delivery_and_activation_begins_its_schedule_anew() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        policy = {"profile": "webhooks_uno", "schedule": {"fixed": [1, 1]}, "jitter": None}
        endpoint = await house.endpoint(policy=policy)
        await house.publish()
        await house.wait(10)
        assert house.route(endpoint).status == "failure"
        assert await house.states() == {"parked:failure": 1}
        assert "endpoint.failure" in await house.notices()
        assert len(house.receivers.calls) == 3
        assert (await house.notices()).count("endpoint.failure") == 1
        await house.set(endpoint, status="active", reason=None)
        await house.wait(20)
        assert len(house.receivers.calls) == 6  # the whole schedule once more
        house.receivers.scripts[A] = answers(200)
        await house.set(endpoint, status="active", reason=None)
        await house.wait(20)
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_our_own_trouble_is_not_charged_to_the_endpoint_and_spends_no_retry() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = lambda call: (0.001, Answer(failure="no_resources"))
        endpoint = await house.endpoint(policy=SHORT | {"auto_disable": {"consecutive_failures": 2}})
        await house.publish(2)
        await house.wait(31)
        # after 5 and 10 seconds, then 20, although the schedule has two retries
        assert len(house.receivers.calls) == 6
        assert (house.route(endpoint).status, house.route(endpoint).failure_count) == ("active", 0)
        house.receivers.scripts[A] = answers(200)
        await house.wait(6)
        assert await house.states() == {"delivered": 2}

    in_house(story)


def test_our_own_trouble_that_lasts_is_asked_about_once_a_minute() -> None:
    """A proxy that is away for a day must not fill the ledger with the history of all that waits for it."""

    async def story(house: House) -> None:
        house.receivers.scripts[A] = lambda call: (0.001, Answer(failure="proxy_failure"))
        await house.endpoint(policy=SHORT)
        await house.publish()
        await house.wait(3_600)
        (delivery,) = await house.deliveries()
        assert 60 <= len(await house.story(delivery)) <= 65
        house.receivers.scripts[A] = answers(200)
        await house.wait(61)
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_a_redirect_that_was_not_followed_for_want_of_a_lease_stands_in_the_history() -> None:
    """Its first hop has been sent: begun anew as if nothing had, one attempt would be two requests."""

    async def story(house: House) -> None:
        house.receivers.scripts[A] = lambda call: (0.001, Answer(failure="aborted", redirected=1))
        await house.endpoint(policy=SHORT)
        await house.publish()
        await house.wait(1)
        house.receivers.scripts[A] = answers(200)
        await house.wait(10)
        (delivery,) = await house.deliveries()
        told = [(each.number, each.outcome, each.error) for each in await house.story(delivery)]
        assert told == [(1, "broken", "aborted"), (2, "delivered", None)]
        assert len(house.receivers.calls) == 2

    in_house(story)


def test_an_endpoint_that_enters_failure_is_reported_once() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        await house.endpoint(policy={"profile": "webhooks_uno", "schedule": {"fixed": [1]}, "jitter": None})
        await asyncio.gather(*(house.publish() for _ in range(5)))
        await house.wait(10)
        assert await house.states() == {"parked:failure": 5}
        assert (await house.notices()).count("endpoint.failure") == 1

    in_house(story)


def test_410_ends_the_delivery_and_makes_the_endpoint_inactive() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(410)
        endpoint = await house.endpoint()
        await asyncio.gather(house.publish(), house.publish())
        await house.wait(5)
        assert await house.states() == {"dead": 2}
        assert house.route(endpoint).status == "inactive"
        assert sorted(await house.notices()) == ["delivery.dead", "delivery.dead", "endpoint.disabled"]
        await house.publish()
        await house.wait(30)
        assert len(house.receivers.calls) == 2
        assert (await house.states())["parked:inactive"] == 1

    in_house(story)


def test_key_trouble_parks_everything_and_the_probe_finds_out_when_it_is_mended() -> None:
    async def story(house: House) -> None:
        problem = b'{"retryable": false, "code": "bad_signature"}'
        headers = b"content-type: application/problem+json\r\n"
        house.receivers.scripts[A] = answers(401, headers=headers, body=problem)
        await house.endpoint()
        await house.publish()
        await house.wait(1)
        await house.publish(20)
        await house.wait(100)
        assert len(house.receivers.calls) == 1
        assert (await house.states())["parked:key"] == 21
        house.receivers.scripts[A] = answers(200)
        await house.wait(260)
        assert await house.states() == {"delivered": 21}

    in_house(story)


def test_hanging_endpoints_leave_half_of_the_lane_to_the_others() -> None:
    settings = EngineSettings(slots_first=40, slots_retry=40)

    async def story(house: House) -> None:
        for number in range(30):
            url = f"https://h{number}.example/"
            house.receivers.scripts[url] = HANGS
            await house.endpoint(url, types=("hang",))
        await house.endpoint(A, types=("doc.signed",))
        late: list[float] = []
        for _ in range(200):
            await house.publish(type="hang")
            before = asyncio.get_running_loop().time()
            seen = len(house.receivers.at(A))
            await house.publish()
            while len(house.receivers.at(A)) == seen:
                await house.wait(0.001)
            late.append(asyncio.get_running_loop().time() - before)
            await house.wait(0.05)
        late.sort()
        assert late[int(len(late) * 0.95)] < 0.05
        assert len(house.receivers.at(A)) == 200

    in_house(story, settings=settings)


def test_a_busy_endpoint_gets_no_more_turns_than_a_quiet_one() -> None:
    settings = EngineSettings(slots_first=4, endpoint_slots=4)

    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=1.0)
        house.receivers.scripts[B] = answers(200, after=1.0)
        await house.endpoint(A, types=("busy",))
        await house.endpoint(B, types=("quiet",))
        await house.publish(100, type="busy")
        await house.publish(4, type="quiet")
        await house.wait(4)
        assert len(house.receivers.at(B)) == 4

    in_house(story, settings=settings)


def test_beyond_its_share_of_memory_an_endpoint_is_parked_and_pulled_back() -> None:
    settings = EngineSettings(memory_deliveries=40, endpoint_share=10)

    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=0.5)
        await house.endpoint()
        await house.publish(300)
        assert house.engine.dispatch.memory.held <= 40
        assert (await house.ledger.parked_counts()) != {}
        await house.wait(60)
        assert len(house.receivers.calls) == 300
        assert await house.ledger.parked_counts() == {}

    in_house(story, settings=settings)


def test_a_ledger_that_cannot_be_written_refuses_the_event_and_sends_nothing() -> None:
    async def story(house: House) -> None:
        await house.endpoint()

        def away(step: str) -> None:
            if step == "before accept":
                raise LedgerUnavailable("away")

        house.faults = away
        with pytest.raises(LedgerUnavailable):
            await house.publish()
        house.faults = lambda step: None
        await house.wait(30)
        assert house.receivers.calls == []
        await house.publish()
        await house.wait(1)
        assert len(house.receivers.calls) == 1

    in_house(story)


@pytest.mark.parametrize("when", ["before accept", "after accept"])
def test_a_commit_whose_outcome_is_unknown_is_run_again_and_sent_once(when: str) -> None:
    async def story(house: House) -> None:
        await house.endpoint()
        left = [1]

        def cut(step: str) -> None:
            if step == when and left:
                left.pop()
                raise CommitUnknown("cut")

        house.faults = cut
        (taken,) = await house.publish()
        assert taken.fresh
        await house.wait(1)
        assert len(house.receivers.calls) == 1
        assert await house.states() == {"delivered": 1}

    in_house(story)


@pytest.mark.parametrize("told", [False, True])
def test_an_event_whose_commit_is_unknown_does_not_fan_out_anew(told: bool) -> None:
    """With new ids it would be another event. `told`: memory hears of the change between the two tries."""

    async def story(house: House) -> None:
        endpoint = await house.endpoint()
        accept, tries = house.ledger.accept, [0]

        async def cut(*args: Any, **named: Any) -> Any:
            tries[0] += 1
            if tries[0] > 1:
                return await accept(*args, **named)
            await accept(*args, **named)
            await house.ledger.change_endpoint(endpoint, {"headers": {"x": "b"}}, now=house.clock.now())
            if told:
                await house.engine.current()
            raise CommitUnknown("cut")

        house.ledger.accept = cut  # type: ignore[method-assign]
        with pytest.raises(CommitUnknown):
            await house.publish(key="a")
        (taken,) = await house.publish(key="a")
        assert (taken.fresh, taken.fan_out) == (False, 1)
        await house.wait(5)
        assert await house.states() == {"delivered": 1}
        assert len(house.receivers.calls) == 1

    in_house(story)


@pytest.mark.parametrize("then", [LedgerUnavailable("gone"), NodeEvicted(b"n" * 16)])
def test_an_event_whose_commit_was_lost_is_in_doubt_whatever_comes_then(then: Exception) -> None:
    """What the ledger said last is no word about the commit before: it may be in the book."""

    async def story(house: House) -> None:
        await house.endpoint()
        accept = house.ledger.accept
        tries: list[None] = []

        async def cut(*args: Any, **named: Any) -> Any:
            tries.append(None)
            if len(tries) > 1:
                raise then
            await accept(*args, **named)
            raise CommitUnknown("cut")

        house.ledger.accept = cut  # type: ignore[method-assign]
        with pytest.raises(CommitUnknown):
            await house.publish(key="a")
        house.ledger.accept = accept  # type: ignore[method-assign]

    in_house(story, stops=False)


def test_results_wait_for_a_ledger_that_is_away_and_nothing_is_sent_twice() -> None:
    async def story(house: House) -> None:
        await house.endpoint()

        def away(step: str) -> None:
            if step == "before record":
                raise LedgerUnavailable("away")

        house.faults = away
        await house.publish(10)
        await house.wait(5)
        assert len(house.receivers.calls) == 10
        assert (await house.states()) == {"sending": 10}
        house.faults = lambda step: None
        await house.wait(5)
        assert (await house.states()) == {"delivered": 10}
        assert len(house.receivers.calls) == 10

    in_house(story)


def test_configuration_that_changed_behind_memory_is_read_before_the_commit() -> None:
    async def story(house: House) -> None:
        await house.endpoint(A)
        # Written by another node: this engine is not told.
        changed = house.engine.changed
        house.engine.changed = lambda: asyncio.sleep(0)  # type: ignore[method-assign]
        await house.endpoint(B)
        house.engine.changed = changed  # type: ignore[method-assign]
        (taken,) = await house.publish()
        assert taken.fan_out == 2

    in_house(story)


def test_deleting_an_endpoint_cancels_what_waits_for_it() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        endpoint = await house.endpoint(policy={"profile": "standard", "schedule": {"fixed": [600]}})
        await house.publish(3)
        await house.wait(1)
        await house.ledger.remove_endpoint(endpoint)
        await house.engine.changed()
        while await house.ledger.end_endpoint(endpoint, reason="deleted", limit=10, now=house.clock.now()):
            pass
        assert await house.states() == {"cancelled:deleted": 3}
        await house.wait(700)
        assert len(house.receivers.calls) == 3

    in_house(story)


def test_shutdown_finishes_what_is_in_flight_and_hands_back_the_rest() -> None:
    settings = EngineSettings(endpoint_slots=2, grace_s=10.0)

    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(200, after=1.0)
        await house.endpoint()
        await house.publish(10)
        await house.wait(0.1)
        await house.engine.stop()
        assert await house.states() == {"delivered": 2, "scheduled": 8}
        house.engine = house.another()
        await house.engine.start()
        await house.wait(20)
        assert await house.states() == {"delivered": 10}
        assert len(house.receivers.calls) == 10

    in_house(story, settings=settings)


def test_what_outlives_the_grace_time_is_freed_as_unknown_and_sent_again() -> None:
    settings = EngineSettings(grace_s=1.0)

    async def story(house: House) -> None:
        house.receivers.scripts[A] = HANGS
        await house.endpoint(policy={"profile": "insigner"})
        await house.publish()
        await house.wait(0.1)
        await house.engine.stop()
        house.receivers.scripts[A] = answers(200)
        house.engine = house.another()
        await house.engine.start()
        await house.wait(5)
        (view,) = await house.deliveries()
        assert [entry.kind for entry in await house.story(view)] == ["interrupted", "attempt"]
        assert view.attempts == 1

    in_house(story, settings=settings)


def test_a_restart_after_a_crash_sends_again_what_the_dead_node_held() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = HANGS
        await house.endpoint(policy={"profile": "insigner"})
        await house.publish(5)
        await house.wait(0.1)
        house.receivers.scripts[A] = answers(200)
        again = house.another()  # the first engine is as good as dead: it never answers again
        await again.start()
        await house.wait(2)
        assert await house.states() == {"delivered": 5}
        assert len(house.receivers.calls) == 10
        house.engine.deliver.halt()
        await again.stop()

    in_house(story, stops=False)


def test_an_evicted_node_forgets_its_memory_and_goes_on_under_a_new_id() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = HANGS
        await house.endpoint(policy="insigner")
        await house.publish(3)
        await house.wait(1)
        before = house.engine.node.id
        assert (await house.ledger.evict([before], now=house.clock.now())).freed == 3
        house.receivers.scripts[A] = answers(200)
        await house.wait(5)
        assert house.engine.node.id != before
        await house.publish()
        await house.wait(1)
        assert await house.states() == {"delivered": 4}
        (first, *_rest) = reversed(await house.deliveries())
        assert [entry.kind for entry in await house.story(first)] == ["interrupted", "attempt"]
        await house.wait(20)  # the answers of the old life come, and count for nothing
        assert len(house.receivers.calls) == 7

    in_house(story)


def test_a_row_held_only_in_the_book_is_found_by_the_second_look() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint()
        await house.set(endpoint, status="paused")
        await house.publish()
        await house.wait(1)
        # Leased in the book behind the engine's back, as after a claim whose answer was lost.
        rows = await house.ledger.unpark(
            endpoint, ["paused"], node=house.engine.node.id, limit=1, now=house.clock.now()
        )
        assert len(rows) == 1
        await house.set(endpoint, status="active")
        await house.wait(15)
        assert house.receivers.calls == []
        await house.wait(15)
        assert await house.states() == {"delivered": 1}

    in_house(story)


def test_an_undelivered_event_is_reported_once_when_it_is_overdue() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = answers(500)
        await house.endpoint(policy={"profile": "signing", "escalate_after": 60, "breaker": None})
        await house.publish()
        await house.wait(200)
        assert (await house.notices()).count("delivery.overdue") == 1

    in_house(story)


def test_a_ledger_that_does_not_answer_is_no_readiness_within_five_seconds() -> None:
    async def story(house: House) -> None:
        def mute(step: str) -> None:
            if step == "before beat":
                raise LedgerUnavailable("no beats")

        await house.wait(2)
        house.faults = mute
        await house.wait(3.5)
        assert house.engine.ready() is None
        await house.wait(1.5)
        assert house.engine.ready() == "the ledger has not answered for 5 s"
        house.faults = lambda step: None
        await house.wait(2)
        assert house.engine.ready() is None

    in_house(story)


def test_nothing_is_sent_on_a_lease_that_runs_out() -> None:
    async def story(house: House) -> None:
        await house.endpoint()

        def mute(step: str) -> None:
            if step == "before beat":
                raise LedgerUnavailable("no beats")

        house.faults = mute
        await house.wait(12)
        assert house.engine.ready() is not None
        await house.publish()
        await house.wait(1)
        assert house.receivers.calls == []
        house.faults = lambda step: None
        await house.wait(3)
        assert len(house.receivers.calls) == 1

    in_house(story)


def test_a_blocked_address_is_retried_and_reported_once() -> None:
    async def story(house: House) -> None:
        house.receivers.scripts[A] = lambda call: (0.001, Answer(failure="address_forbidden", total_us=100))
        await house.endpoint(policy=SHORT)
        await house.publish()
        await house.wait(20)
        assert len(house.receivers.calls) == 3
        assert (await house.notices()).count("endpoint.blocked") == 1

    in_house(story)


def test_what_falls_due_for_an_endpoint_that_is_gone_ends_at_once() -> None:
    """It waits for no turn in a lane: meanwhile nobody would find it among what this node holds."""

    async def story(house: House) -> None:
        house.receivers.scripts[B] = lambda call: (
            (0.01, Answer(status=500)) if call.timeout_s < 60 else (50.0, Answer(status=200))
        )
        await house.endpoint(B, policy={**SHORT, "timeouts": {"first": 5, "retry": 60}}, types=("doc.sent",))
        await house.publish(type="doc.sent")
        await house.wait(1)
        house.receivers.scripts[A] = answers(500)
        gone = await house.endpoint(A, policy=SHORT, types=("doc.signed",))
        await house.publish()
        await house.wait(
            1.5
        )  # the one slot for retries is busy, and the other retry waits in memory for its time
        assert [call.url for call in house.receivers.calls] == [B, A, B]
        assert house.engine.arrivals.timers.held_ids()
        await house.ledger.remove_endpoint(gone)
        await house.engine.changed()
        await house.wait(1)
        assert (await house.states()).get("cancelled:deleted") == 1

    in_house(story, settings=EngineSettings(slots_retry=1, claim_ahead_s=5.0))


def test_a_node_is_evicted_when_what_it_hands_back_has_arrived() -> None:
    async def story(house: House) -> None:
        done: list[str] = []

        def watched(name: str, *, takes_s: float = 0) -> None:
            call = getattr(house.ledger, name)

            async def told(*args: Any, **said: Any) -> Any:
                await asyncio.sleep(takes_s)
                answer = await call(*args, **said)
                done.append(name)
                return answer

            setattr(house.ledger, name, told)

        watched("release", takes_s=1)
        watched("evict")
        await house.endpoint(policy=SHORT)
        house.receivers.scripts[A] = answers(500)
        await house.publish()
        await house.wait(1)
        (row,) = await house.ledger.claim(
            RETRY,
            node=house.engine.node.id,
            limit=1,
            due_by=house.clock.now() + 60_000,
            now=house.clock.now(),
            size=1_000,
        )
        row.due_at += 600_000  # as if taken out of parking: the ledger keeps it until its time is near
        house.engine.arrivals.take([row])
        await house.engine.stop()
        assert done == ["release", "evict"]

    in_house(story, stops=False)
