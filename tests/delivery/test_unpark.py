"""Taking back goes on however often it is woken, and begins as soon as sending goes on."""

from __future__ import annotations

from .house import REFUSES, House, answers, in_house

A, B = "https://a.example/hook", "https://b.example/hook"
ONCE = {"profile": "standard", "schedule": {"fixed": [3600]}, "jitter": None}


async def opened(house: House, url: str, tenant: str, probe_after: int) -> bytes:
    """An endpoint whose breaker is open, with deliveries that its probe may take."""
    house.receivers.scripts[url] = REFUSES
    policy = ONCE | {"breaker": {"calls": 5, "probe_after": probe_after}}
    endpoint = await house.endpoint(url, policy=policy, types=(tenant,))
    await house.publish(5, type=tenant)
    await house.wait(1)
    await house.publish(5, type=tenant)
    assert house.route(endpoint).breaker.state == "open"
    return endpoint


def test_a_probe_is_not_put_off_by_those_who_wake_the_loop_all_the_time() -> None:
    """Whoever publishes to another endpoint whose breaker is open does so: a probe waited for the ten-second look."""

    async def story(house: House) -> None:
        endpoint = await opened(house, A, "a", 24)
        await opened(house, B, "b", 3600)
        house.receivers.scripts[A] = answers(200)
        breaker, clock = house.route(endpoint).breaker, house.clock
        before = len(house.receivers.at(A))
        while clock.now() < breaker.probe_at + 100 and len(house.receivers.at(A)) == before:
            house.engine.unpark._refill.wake.set()
            await house.wait(0.004)
        assert len(house.receivers.at(A)) > before

    in_house(story)


def test_who_wants_work_is_served_as_soon_as_sending_goes_on() -> None:
    async def story(house: House) -> None:
        endpoint = await house.endpoint(A, policy=ONCE | {"breaker": None})
        await house.set(endpoint, status="paused")
        await house.publish(5)
        house.engine.dispatch.pause()
        await house.set(endpoint, status="active")
        await house.wait(0.5)  # it has been asked, and nothing is taken back while sending has stopped
        assert not house.receivers.calls
        house.engine.pausing.resume()
        await house.wait(0.1)
        assert len(house.receivers.calls) == 5

    in_house(story)
