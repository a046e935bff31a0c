"""Each late or repeated arrival is charged to the kill that stood before it."""

from lab.bench.interruptions import Kill, account, passed, tolls

from .making import arrivals, sent

S = 1_000_000_000
KILLS = [
    Kill(killed_ns=10 * S, started_ns=11 * S, ready_s=0.1, in_flight=1),
    Kill(killed_ns=20 * S, started_ns=21 * S, ready_s=0.1, in_flight=1),
]


def test_what_was_acknowledged_before_a_kill_and_arrives_after_it_was_interrupted():
    each, _ = tolls(KILLS, sent((b"e1", 0, 9 * S)), arrivals((b"d1", b"e1", 13 * S)))
    assert (each[0].interrupted, each[0].last_interrupted_s, each[0].sent_again) == (1, 2.0, 0)
    assert each[1].interrupted == 0


def test_a_straggler_is_charged_to_the_first_kill_it_waited_through():
    each, _ = tolls(KILLS, sent((b"e1", 0, 9 * S)), arrivals((b"d1", b"e1", 23 * S)))
    assert each[0].last_interrupted_s == 12.0


def test_a_repeat_across_a_kill_is_that_kills():
    each, unexplained = tolls(
        KILLS, sent((b"e1", 0, 18 * S)), arrivals((b"d1", b"e1", 19 * S), (b"d1", b"e1", 22 * S))
    )
    assert (each[1].sent_again, unexplained) == (1, 0)


def test_a_repeat_without_a_kill_in_between_has_no_excuse():
    found = arrivals((b"d1", b"e1", 12 * S), (b"d1", b"e1", 13 * S))
    each, unexplained = tolls(KILLS, sent((b"e1", 0, 11 * S)), found)
    assert (each[0].sent_again, unexplained) == (0, 1)
    assert not passed(account(KILLS, sent((b"e1", 0, 11 * S)), found, bound=10))


def test_what_the_dying_process_sent_may_arrive_after_the_signal():
    found = arrivals((b"d1", b"e1", 10 * S + 5), (b"d1", b"e1", 12 * S))
    each, unexplained = tolls(KILLS, sent((b"e1", 0, 9 * S)), found)
    assert (each[0].sent_again, unexplained) == (1, 0)


def test_an_event_accepted_after_the_restart_was_not_interrupted():
    each, _ = tolls(KILLS, sent((b"e1", 0, 12 * S)), arrivals((b"d1", b"e1", 13 * S)))
    assert each[0].interrupted == 0


def test_the_first_sending_after_a_start_is_timed_from_it():
    each, _ = tolls(KILLS, sent(), arrivals((b"d1", b"e1", 12 * S)))
    assert each[0].first_send_s == 1.0
    assert each[1].first_send_s is None


def test_a_loss_fails_the_campaign():
    result = account(
        KILLS, sent((b"e1", 0, 9 * S), (b"e2", 0, 9 * S)), arrivals((b"d1", b"e1", 9 * S)), bound=10
    )
    assert result["lost"] == 1
    assert not passed(result)


def test_a_delivery_whose_only_request_was_cut_off_is_lost():
    found = arrivals((b"d1", b"e1", 9 * S), unanswered=(b"d1",))
    assert account(KILLS, sent((b"e1", 0, 8 * S)), found, bound=10)["lost"] == 1


def test_more_repeats_than_the_bound_fail_the_campaign():
    found = arrivals((b"d1", b"e1", 9 * S), (b"d1", b"e1", 12 * S))
    result = account(KILLS, sent((b"e1", 0, 8 * S)), found, bound=0)
    assert (result["lost"], result["within_bound"]) == (0, False)
    assert not passed(result)
    assert passed(account(KILLS, sent((b"e1", 0, 8 * S)), found, bound=1))


def test_a_campaign_in_which_nothing_happened_does_not_pass():
    assert not passed(account(KILLS, sent(), arrivals(), bound=10))
