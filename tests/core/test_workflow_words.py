"""What people say about a document: let it go on, let one event pass, and an event that moved it does not stand after all."""

from __future__ import annotations

from itertools import permutations, product

import msgspec
import pytest
from msgspec.structs import replace

from surehook.core.workflow.data import parse_table, render_table
from surehook.core.workflow.decide import (
    COMMANDS_MAX,
    Arrival,
    Document,
    OperatorCommand,
    Order,
    Table,
    WorkflowError,
    asked,
    decide,
    grant,
    granted,
    is_undone,
    release,
)
from surehook.core.workflow.explain import explain
from surehook.core.workflow.signing import SIGNING
from surehook.core.workflow.table_values import STRICT_WAIT_S
from tests.core.test_workflow_rules import BUFFER, NOW, STOP, Story, begun, says
from tests.core.workflow_model import AGREED, arrivals, expected

BACK = replace(SIGNING, rejected={"document.signed": {"signed": "viewed", "completed": "voided"}})


class Told(Story):
    """A story in which people have a word."""

    def say(self, what: str, step=None, *, by: str = "ana", why: str = "seen on paper") -> None:
        """Have the word written down; the next decision carries it out."""
        assert self.document is not None
        self.document = asked(
            self.document, OperatorCommand(what=what, at=self.now, by=by, why=why, step=step)
        )

    def reject(self, step, why: str = "compliance") -> None:
        self.say("undo", step, by="", why=why)
        self.wait(0)

    def reasons(self, rule: str) -> list[str]:
        return [step.reason for step in self.history if step.rule == rule]


def told(*what: str, table: Table = SIGNING, **more) -> Told:
    story = Told(table)
    for one in what:
        story.tell(one, **more)
    return story


# -- the bound of strict order


def test_strict_order_waits_three_days_and_then_refuses_what_waited():
    story = told("sent")
    story.tell("signed", 3, id="early")
    story.wait(STRICT_WAIT_S - 1)
    assert (story.state, story.wake_at) == ("sent", NOW + STRICT_WAIT_S * 1000)
    story.wait(1)
    assert story.last == ("conflict", "waited_too_long")
    assert story.document.waiting == ()
    story.tell("viewed", 2)
    assert says(story.tell("signed", 3, id="early")) == ("applied", "move", "viewed", "signed")


def test_a_table_may_say_how_long_strict_order_waits_or_that_it_does_for_ever():
    short = replace(SIGNING, order=Order(wait_s=60))
    assert (short.order.then, short.digest == SIGNING.digest) == ("refuse", False)
    ever = replace(SIGNING, order=Order(then="wait"))
    story = told("sent", table=ever)
    story.tell("signed", 3)
    story.wait(10 * 365 * 86_400)
    assert (story.state, story.wake_at, len(story.document.waiting)) == ("sent", None, 1)
    for table in (short, ever):
        assert parse_table(render_table(table, "toml"), "toml") == table


@pytest.mark.parametrize(
    ("order", "field"),
    [
        ({"then": "skip", "wait_s": 5}, "order.then"),
        ({"then": "wait", "wait_s": 5}, "order.wait_s"),
        ({"then": "refuse"}, "order.wait_s"),
        ({"wait_s": -1}, "order.wait_s"),
    ],
)
def test_a_bound_of_strict_order_that_cannot_be_meant_is_refused(order, field):
    with pytest.raises(WorkflowError) as caught:
        replace(SIGNING, order=Order(**order))
    assert [(flaw.code, flaw.field) for flaw in caught.value.flaws] == [("bad_bound", field)]


# -- release


def test_a_release_says_who_and_why():
    story = told("sent")
    story.tell("signed", 3)
    story.say("release")
    story.wait(0)
    assert story.state == "signed"
    (step,) = (one for one in story.history if one.rule == "gave_up")
    assert (step.by, step.reason) == ("ana", "number 2 given up by ana: seen on paper")


def test_a_release_behind_a_conflict_says_who_and_why():
    story = told("sent", "signed", table=STOP)
    story.tell("expired", party="ana")
    story.tell("completed", id="stops")
    story.say("release")
    story.wait(0)
    assert story.document.stopped is None
    assert story.history[-1].by == "ana"


def test_a_word_is_carried_out_before_whatever_comes_next_and_a_second_one_is_the_same():
    story = told("sent")
    story.tell("signed", 3)
    story.tell("completed", 5)
    story.say("release")
    story.say("release", by="bob")
    assert len(story.document.words) == 1
    assert "release was asked for by ana: seen on paper" in explain([], story.document)[1]
    assert says(story.tell("viewed", 2))[:2] == ("stale", "settled_number")
    assert (story.state, story.document.words, len(story.document.waiting)) == ("signed", (), 1)


def test_a_wait_that_was_over_when_the_word_was_said_is_ended_first():
    """However late the next decision comes."""
    story = told("sent", table=replace(SIGNING, order=Order(wait_s=60)))
    story.tell("signed", 3)
    story.now += 61_000
    story.say("release")
    story.wait(100)
    assert [step.rule for step in story.history[-2:]] == ["waited_too_long", "gave_up"]
    assert (story.state, story.document.next) == ("sent", 3)
    other = told("sent", table=replace(SIGNING, order=Order(wait_s=60)))
    other.tell("signed", 3)
    other.now += 59_000
    other.say("release")
    other.wait(100)
    assert other.state == "signed"


def test_a_release_where_nothing_waits_changes_nothing():
    story = begun("sent")
    decision = release(SIGNING, story.document, NOW, by="ana", why="a mistake")
    assert decision.document == story.document
    (step,) = decision.steps
    assert (step.verdict, step.rule, step.by) == ("no_op", "released", "ana")
    assert step.reason == "nothing was held any more; released by ana: a mistake"


def test_a_release_names_the_event_without_a_number_that_goes_on():
    story = told("sent", table=BUFFER)
    story.tell("completed", None, id="c")
    story.say("release")
    story.wait(0)
    assert [step.reason for step in story.history if step.rule == "released"] == [
        "c was released by ana: seen on paper"
    ]
    assert story.state == "completed"


@pytest.mark.parametrize("table", [SIGNING, BUFFER], ids=["strict", "buffer"])
def test_whatever_is_missing_releases_bring_every_document_to_its_end(table):
    """All sets of events that never come, in many orders: no document is stuck, and no handler hears of a number twice or back."""
    table = replace(table, order=replace(table.order, count=64))
    lines = AGREED
    for missing in product([False, True], repeat=7):
        numbers = [number for number in range(1, 8) if not missing[number - 1]]
        for order in [*list(permutations(numbers))[::97], numbers]:
            document, took = None, []
            for number in order:
                decision = decide(table, document, arrivals(lines)[number - 1], NOW)
                document = decision.document
                took += [step.sequence for step in decision.steps if step.verdict not in ("early",)]
            rounds = 0
            while document is not None and document.waiting:
                decision = decide(
                    table, asked(document, OperatorCommand(what="release", at=NOW, by="ana")), None, NOW
                )
                assert decision.steps, "a release that does nothing"
                document, rounds = decision.document, rounds + 1
                took += [step.sequence for step in decision.steps if step.event]
            assert took == numbers
            assert rounds <= 7


# -- grant


def test_a_granted_token_lets_one_event_pass_a_gap_with_what_waited_before_it():
    story = told("sent")
    story.tell("viewed", 3, id="v")
    story.tell("completed", 9)
    story.grant("t")
    step = story.tell("signed", 5, token="t")
    assert says(step) == ("applied", "move", "viewed", "signed")
    assert not step.released
    assert [one.event for one in story.history if one.released] == ["v"]
    assert story.reasons("gave_up") == [
        "number 2 given up for a remediation token",
        "number 4 given up for a remediation token",
    ]
    assert story.document.grants == ()
    assert story.tell("completed", 7, token="t").verdict == "early"


def test_a_granted_token_waits_where_one_before_it_stops_the_document():
    story = told("sent", "signed", table=STOP)
    story.tell("expired", 4)
    story.tell("completed", 5, id="stops")
    story.grant("t")
    assert says(story.tell("voided", 7, token="t"))[:2] == ("early", "stopped")
    assert story.document.stopped.id == "stops"
    assert len(story.document.grants) == 1


def test_a_token_that_nobody_granted_passes_no_gap():
    story = told("sent")
    story.grant("t")
    assert story.tell("signed", 5, token="u").verdict == "early"
    assert story.tell("signed", 6, remediated=True).verdict == "early"
    assert len(story.document.grants) == 1


def test_a_granted_token_passes_over_states_that_were_not_seen_once():
    story = told("sent")
    assert says(story.tell("completed", id="a"))[:2] == ("conflict", "unproven")
    story.grant("t")
    assert says(story.tell("completed", token="t")) == ("applied", "leap", "sent", "completed")
    assert story.document.grants == ()


def test_a_signer_may_pass_over_states_with_a_token_too():
    assert SIGNING.parties is not None
    strict = replace(
        SIGNING, parties=replace(SIGNING.parties, moves={
            "document.viewed": {"pending": "viewed"}, "document.signed": {"viewed": "signed"},
            "document.declined": {"pending": "declined", "viewed": "declined"},
        }),
    )  # fmt: skip
    story = told("sent", table=strict)
    story.tell("viewed", party="bob")
    assert says(story.tell("signed", party="ana"))[:2] == ("conflict", "unproven")
    story.grant("t")
    assert story.tell("signed", party="ana", token="t").party_after == "signed"
    assert story.document.grants == ()


def test_what_is_granted_is_written_down_and_the_token_is_not():
    document = begun("sent").document
    held, step = granted(SIGNING, document, "secret", NOW, by="ana", why="asked again")
    assert held == grant(document, "secret")
    assert (step.verdict, step.rule, step.by) == ("no_op", "granted", "ana")
    assert step.reason == "a remediation token was granted by ana: asked again"
    assert "secret" not in msgspec.json.encode([held, step]).decode()
    assert granted(SIGNING, held, "secret", NOW, by="ana", why="again") == (held, None)
    Story.met.add((step.verdict, step.rule))


# -- an event that was rejected after it had taken effect


def test_what_a_rejected_event_moved_goes_back_to_where_it_came_from():
    story = told("sent")
    step = story.tell("signed", party="ana")
    assert (story.state, story.party("ana")) == ("signed", "signed")
    story.reject(step)
    assert (story.state, story.party("ana")) == ("sent", "pending")
    assert says(story.history[-1]) == ("applied", "undone", "signed", "sent")
    assert not story.history[-1].is_move
    assert "was rejected (compliance): signed → sent; ana: signed → pending" in story.history[-1].reason


def test_a_rejected_event_may_have_effect_once_more_when_it_is_handed_in_again():
    story = told("sent")
    step = story.tell("signed", id="s")
    story.reject(step)
    assert is_undone(story.document, "s")
    assert says(story.tell("signed", 2, id="s")) == ("applied", "move", "sent", "signed")
    assert (story.document.next, is_undone(story.document, "s")) == (3, False)
    assert story.tell("signed", 2, id="s").verdict == "duplicate"
    assert says(story.tell("completed", 3)) == ("applied", "move", "signed", "completed")


@pytest.mark.parametrize("party", [None, "ana"])
def test_so_too_one_of_a_newer_workflow_version_which_does_not_count_any_more(party):
    """A replay was `locked`: the document was of its version already, so that it was no newer one."""
    story = told("sent", "declined")
    step = story.tell("sent", id="s", version="2", party=party)
    assert story.document.version == "2"
    story.reject(step)
    assert (story.state, story.document.version) == ("declined", None)
    assert story.tell("viewed", version="1").rule != "older_version"
    assert says(story.tell("sent", 3, id="s", version="2", party=party))[:2] == ("applied", "remedy")
    assert story.document.version == "2"


def test_so_too_a_leap_over_numbers_that_were_given_up():
    story = told("sent", table=BUFFER)
    story.tell("completed", 4, id="c")
    story.wait(61)
    (step,) = [one for one in story.history if one.event == "c" and one.is_move]
    assert (step.rule, story.document.holes) == ("leap", False)
    story.reject(step)
    assert (story.state, story.document.holes) == ("sent", True)
    assert says(story.tell("completed", 4, id="c"))[:2] == ("applied", "leap")


def test_a_version_on_which_others_built_stays():
    story = told("sent", table=BACK)
    step = story.tell("signed", version="2")
    story.tell("completed", version="2")
    story.reject(step)
    assert (story.state, story.document.version) == ("voided", "2")


def test_an_undone_event_that_does_not_fit_now_may_be_handed_in_again_later():
    story = told("sent", "viewed")
    step = story.tell("signed", id="s")
    story.reject(step)
    story.tell("expired")
    assert says(story.tell("signed", 3, id="s"))[:2] == ("stale", "terminal")
    assert is_undone(story.document, "s")


def test_an_undone_event_that_contradicts_stops_no_document_whose_number_is_settled():
    story = told("sent", "signed", table=STOP)
    step = story.tell("completed", id="c")
    story.reject(step)
    story.tell("expired")
    assert says(story.tell("completed", 3, id="c"))[:2] == ("conflict", "contradiction")
    assert (story.document.stopped, story.document.next) == (None, 5)


def test_the_table_may_say_where_a_rejected_event_leads_also_later():
    story = told("sent", table=BACK)
    step = story.tell("signed")
    story.reject(step)
    assert story.state == "viewed"
    late = told("sent", table=BACK)
    step = late.tell("signed")
    late.tell("completed")
    late.reject(step)
    assert late.state == "voided"


def test_what_later_events_built_on_is_left_to_people():
    story = told("sent")
    step = story.tell("signed", party="ana")
    story.tell("signed", party="bob")
    story.reject(step)
    assert says(story.history[-1]) == ("conflict", "not_undone", "signed", "signed")
    assert story.party("ana") == "signed"
    assert not is_undone(story.document, step.event)


def test_a_way_that_was_opened_is_not_closed_again_unless_the_table_says_where_to():
    story = told("sent", "signed")
    step = story.tell("voided")
    story.reject(step)
    assert (story.state, story.last) == ("voided", ("conflict", "not_undone"))
    reopened = told(
        "sent", "signed", table=replace(SIGNING, rejected={"document.voided": {"voided": "sent"}})
    )
    step = reopened.tell("voided")
    reopened.reject(step)
    assert reopened.state == "sent"


def test_a_wrong_way_for_rejected_events_is_refused_with_its_place():
    with pytest.raises(WorkflowError) as caught:
        replace(SIGNING, rejected={"document.signed": {"signed": "nowhere"}, "certificate.attached": {}})
    assert [(flaw.code, flaw.field) for flaw in caught.value.flaws] == [
        ("unknown_state", "rejected.document.signed.signed"),
        ("unknown_type", "rejected.certificate.attached"),
    ]


def test_whichever_of_a_documents_moves_is_rejected_and_whenever_the_journal_and_the_state_agree():
    """Every move of every arrival order of six events, rejected after every later arrival: the model is the journal itself."""
    lines = tuple(line for line in AGREED if line.party != "bob")
    events = arrivals(lines)
    for order in list(permutations(range(1, len(lines) + 1)))[::7]:
        for victim, when in product(range(1, len(lines) + 1), range(1, len(lines) + 1)):
            assert_undone(events, order, victim, when)


def assert_undone(events: tuple[Arrival, ...], order: tuple[int, ...], victim: int, when: int) -> None:
    document: Document | None = None
    steps = []
    for place, number in enumerate(order, start=1):
        decision = decide(SIGNING, document, events[number - 1], NOW)
        document, steps = decision.document, [*steps, *decision.steps]
        moved = [step for step in steps if step.is_move and step.event == f"evt_{victim}"]
        if place != when or not moved:
            continue
        newest = [step for step in steps if step.is_move][-1]
        decision = decide(
            SIGNING, asked(document, OperatorCommand(what="undo", at=NOW, step=moved[-1])), None, NOW
        )
        document, (step,) = decision.document, decision.steps
        steps.append(step)
        if moved[-1] == newest:
            assert (step.rule, document.state) == ("undone", moved[-1].before)
        else:
            assert (step.rule, document.state) == ("not_undone", newest.after)
    assert document is not None
    state = "draft"
    for step in steps:
        assert step.before == state
        state = step.after
    assert document.state == state


def test_the_model_of_arrival_is_kept_where_nobody_says_a_word():
    """The walk of test_workflow_orders holds for the table with ways for rejected events as well."""
    document, arrived = None, frozenset()
    for number in (3, 1, 2, 7, 5, 4, 6):
        decision = decide(BACK, document, arrivals(AGREED)[number - 1], NOW)
        found = [(step.event, step.verdict, step.after, step.released) for step in decision.steps]
        assert found == expected(AGREED, arrived, number)
        document, arrived = decision.document, arrived | {number}


def test_what_people_have_said_before_a_worker_comes_is_bounded():
    document = decide(SIGNING, None, Arrival(id="a", type="document.sent", sequence=1), NOW)
    step, stands = document.own, document.document
    for _ in range(COMMANDS_MAX):
        stands = asked(stands, OperatorCommand(what="undo", at=NOW, step=step))
    with pytest.raises(WorkflowError, match="100 commands wait for a worker already"):
        asked(stands, OperatorCommand(what="undo", at=NOW, step=step))
    told = decide(SIGNING, stands, None, NOW).document
    assert asked(told, OperatorCommand(what="undo", at=NOW, step=step)).words != ()
