"""Tenants that rest: which rows are read meanwhile, for how long, and what an operator hears."""

from __future__ import annotations

from surehook.core.outbox_answers import TenantRest
from surehook.outbox.resting import REST_MOST_S, RESTING_MOST, TenantRests

FULL = TenantRest(1.0, "tenant_overloaded", "full")


def test_a_tenant_rests_longer_each_time_until_something_of_it_is_published() -> None:
    rests, now, pauses = TenantRests(), 0.0, []
    for _ in range(7):
        rests.rest({"acme": FULL}, goes_on=set(), now=now)
        began = now
        while "acme" in rests._until:
            now += 0.5
            rests.left_out(now)
        pauses.append(now - began)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0] and REST_MOST_S == 15.0
    rests.rest({}, goes_on={"acme"}, now=now)
    assert {rests.left_out(now) for _ in range(4)} == {()}
    rests.rest({"acme": FULL}, goes_on=set(), now=now)
    assert rests._until["acme"] == now + 1.0


def test_three_readings_in_four_leave_out_who_rested_before() -> None:
    rests = TenantRests()
    rests.rest({"acme": FULL}, goes_on=set(), now=0.0)
    assert [rests.left_out(0.5) for _ in range(5)] == [("acme",)] * 5
    assert sorted(rests.left_out(2.0) for _ in range(8)) == [(), (), *[("acme",)] * 6]


def test_where_nobody_else_has_rows_the_next_reading_is_of_those_that_rested() -> None:
    rests = TenantRests()
    rests.rest({"acme": FULL}, goes_on=set(), now=0.0)
    assert rests.left_out(2.0) == ("acme",)
    assert not rests.is_all_read()
    assert rests.left_out(2.0) == ()
    assert rests.is_all_read()


def test_an_operator_hears_of_each_reason_once() -> None:
    rests = TenantRests()
    said = "rows of tenant acme wait, tenant_overloaded: full"
    assert rests.rest({"acme": FULL}, goes_on=set(), now=0.0) == [said]
    assert rests.rest({"acme": FULL}, goes_on=set(), now=9.0) == []
    other = TenantRest(1.0, "unauthorized", "no key")
    assert rests.rest({"acme": other}, goes_on=set(), now=19.0) == [
        "rows of tenant acme wait, unauthorized: no key"
    ]


def test_where_very_many_rest_nothing_is_read() -> None:
    rests = TenantRests()
    rests.rest({f"t{n}": FULL for n in range(RESTING_MOST + 1)}, goes_on=set(), now=0.0)
    assert rests.left_out(0.5) is None
    assert rests.left_out(1.5) is not None
    assert len(rests._slow) == RESTING_MOST
