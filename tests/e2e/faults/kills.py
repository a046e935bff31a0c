"""kill -9 under load, again and again on the same ledger."""

from __future__ import annotations

import time
from typing import Any

from tests.e2e.calling import until
from tests.e2e.faults.place import Place, Publisher, account
from tests.e2e.receivers import Reply

UPTIME_S = (0.2, 0.9)  # between two kills
AGAIN_S = 2.0  # a restarted server sends again within this time of being ready
PER_KILL = 1024 + 512  # requests in flight (both lanes) and one record window (docs/delivery-contract.md)


def kill9(place: Place) -> dict[str, Any]:
    """Nothing that was answered 202 is lost, whatever the moment; what was unrecorded is sent again, and only that."""
    kills = 10 if place.long else 3
    with place.shop() as shop:
        tenant = shop.tenant()
        spot = shop.receiver.spot(rule=lambda seen: Reply(delay_s=0.02))
        shop.endpoint(tenant, spot.url)
        slowest = 0.0
        with Publisher(shop, tenant) as publisher:
            for _ in range(kills):
                publisher.until(20)
                time.sleep(place.dice.uniform(*UPTIME_S))
                shop.server.kill()
                shop.start()
                before, ready = len(spot.seen), time.monotonic()
                until(lambda count=before: len(spot.seen) > count, "the restarted server sends", AGAIN_S + 3)
                slowest = max(slowest, time.monotonic() - ready)
            publisher.until(20)
        found = account(shop, tenant, publisher, spot)
        assert found["duplicated"] <= kills * PER_KILL
        assert slowest <= AGAIN_S, f"{slowest:.1f} s until the first request after a restart"
        repeats = sorted(publisher.accepted)[:: max(1, len(publisher.accepted) // 20)]
        for event in repeats:
            assert shop.api.get(f"/v1/events/{event}")["deliveries"] == 1
        return {**found, "kills": kills, "sends_again_s": round(slowest, 2)}


def kill9_while_configuring(place: Place) -> dict[str, Any]:
    """What was answered 201 before a kill is there after it: tenants, endpoints with their secrets, types."""
    made = 0
    with place.shop() as shop:
        for _ in range(5 if place.long else 2):
            tenant = shop.tenant()
            spot = shop.receiver.spot()
            endpoint = shop.endpoint(tenant, spot.url)
            shop.server.kill()
            shop.start()
            assert shop.api.get(f"/v1/endpoints/{endpoint['id']}") == {
                **endpoint,
                "secret": None,
                "key_id": None,
            }
            event = shop.publish(tenant)
            shop.server.kill()
            shop.start()
            seen = spot.wait(1)
            assert {each["webhook-id"] for each in seen} == {event}
            assert shop.finished(event)["state"] == "delivered"
            made += 1
    return {"rounds": made}
