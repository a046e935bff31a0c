"""SIGTERM, twice; and a process that is frozen for a while."""

from __future__ import annotations

import signal
import time
from collections import Counter
from typing import Any

from tests.e2e.calling import until
from tests.e2e.faults.place import Place, Publisher, account
from tests.e2e.receivers import Reply

SPARE_S = 2.0  # beyond the grace time: closing files, ending threads, a busy machine
FROZEN_S = 17.0  # longer than a lease lasts (15 s)


def sigterm(place: Place) -> dict[str, Any]:
    """Under load the server finishes what is in flight, exits with 0 in its grace time, and sends nothing twice."""
    took = 0.0
    with place.shop() as shop:
        tenant = shop.tenant()
        spot = shop.receiver.spot(rule=lambda seen: Reply(delay_s=0.15))
        shop.endpoint(tenant, spot.url)
        with Publisher(shop, tenant) as publisher:
            for _ in range(4 if place.long else 2):
                publisher.until(30)
                began = time.monotonic()
                assert shop.server.process is not None
                shop.server.process.send_signal(place.dice.choice((signal.SIGTERM, signal.SIGINT)))
                assert shop.server.process.wait(20) == 0, shop.log[-2000:]
                took = max(took, time.monotonic() - began)
                shop.start()
            publisher.until(10)
        found = account(shop, tenant, publisher, spot)
        assert found["duplicated"] == 0, f"{found['duplicated']} requests were sent twice over a clean stop"
        assert took < 10 + SPARE_S
        history = [
            row
            for event in list(publisher.accepted)[:50]
            for row in shop.attempts(shop.delivery(event)["id"])
        ]
        assert {row["kind"] for row in history} == {"attempt"}, "a clean stop interrupts nothing"
        return {**found, "stop_s": round(took, 2)}


def sigterm_with_a_hanging_receiver(place: Place) -> dict[str, Any]:
    """What does not finish in the grace time is handed back, tried again after the start, and stands in its history."""
    with place.shop(SUREHOOK_GRACE_S="1") as shop:
        tenant = shop.tenant()
        spot = shop.receiver.spot(Reply(hang=True), Reply(200))
        shop.endpoint(
            tenant,
            spot.url,
            policy={"timeouts": {"first": 20, "retry": 20}, "schedule": {"fixed": [0.2] * 3}},
        )
        event = shop.publish(tenant)
        spot.wait(1)
        began = time.monotonic()
        assert shop.server.process is not None
        shop.server.process.terminate()
        assert shop.server.process.wait(20) == 0
        took = time.monotonic() - began
        assert took < 1 + SPARE_S, f"{took:.1f} s with a grace time of 1 s"
        shop.start()
        seen = spot.wait(2)
        done = shop.finished(event)
        kinds = Counter(row["kind"] for row in shop.attempts(done["id"]))
        assert done["state"] == "delivered" and len(seen) == 2
        assert kinds["attempt"] + kinds["interrupted"] >= 2, kinds
        return {"stop_s": round(took, 2), **kinds}


def second_signal(place: Place) -> dict[str, Any]:
    """A second signal stops the server at once, and a start afterwards goes on."""
    with place.shop(SUREHOOK_GRACE_S="60") as shop:
        tenant = shop.tenant()
        spot = shop.receiver.spot(Reply(hang=True), Reply(200))
        shop.endpoint(
            tenant,
            spot.url,
            policy={"timeouts": {"first": 20, "retry": 20}, "schedule": {"fixed": [0.2] * 3}},
        )
        event = shop.publish(tenant)
        spot.wait(1)
        process = shop.server.process
        assert process is not None
        process.terminate()
        time.sleep(0.5)  # the first signal is still waiting for the receiver
        assert process.poll() is None
        began = time.monotonic()
        process.terminate()
        status = process.wait(5)
        took = time.monotonic() - began
        assert status in (128 + signal.SIGTERM, -signal.SIGTERM) and took < 1, (status, took)
        shop.start()
        done = shop.finished(event)
        kinds = Counter(row["kind"] for row in shop.attempts(done["id"]))
        assert done["state"] == "delivered" and kinds == {"interrupted": 1, "attempt": 1}, kinds
        return {"stop_s": round(took, 2)}


def no_false_202_while_stopping(place: Place) -> dict[str, Any]:
    """While it stops, a server answers 503 or not at all; each 202 of that time is on disk."""
    with place.shop(SUREHOOK_GRACE_S="2") as shop:
        tenant = shop.tenant()
        hanging, spot = shop.receiver.spot(Reply(hang=True)), shop.receiver.spot()
        slow = shop.tenant()
        shop.endpoint(slow, hanging.url, policy={"timeouts": {"first": 20, "retry": 20}})
        shop.endpoint(tenant, spot.url)
        shop.publish(slow)
        hanging.wait(1)
        with Publisher(shop, tenant, threads=4, pause_s=0) as publisher:
            publisher.until(50)
            assert shop.server.process is not None
            shop.server.process.terminate()
            assert shop.server.process.wait(20) == 0
            shop.start()
            publisher.until(20)
        return account(shop, tenant, publisher, spot)


def freeze(place: Place) -> dict[str, Any]:
    """A process that is frozen past its lease goes on afterwards: all arrives, and its books stay right."""
    frozen = 20.0 if place.long else FROZEN_S
    with place.shop() as shop:
        tenant = shop.tenant()
        spot = shop.receiver.spot()
        shop.endpoint(tenant, spot.url)
        with Publisher(shop, tenant, threads=2) as publisher:
            publisher.until(30)
            assert shop.server.process is not None
            shop.server.process.send_signal(signal.SIGSTOP)
            count = len(spot.seen)
            # Real time passes for a frozen process, and nothing else shows what it does then.
            time.sleep(frozen)
            assert len(spot.seen) <= count + 32, "a frozen process sends nothing"
            shop.server.process.send_signal(signal.SIGCONT)
            woken = time.monotonic()
            until(lambda: shop.server.api.ready(), "ready again", 15)
            publisher.until(20)
            took = time.monotonic() - woken
        found = account(shop, tenant, publisher, spot)
        assert shop.server.alive()
        return {**found, "frozen_s": frozen, "goes_on_after_s": round(took, 2)}
