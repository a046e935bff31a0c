"""One story for each rule of a workflow."""

from __future__ import annotations

from typing import ClassVar

import pytest
from msgspec.structs import replace

from surehook.core.workflow import draft
from surehook.core.workflow.decide import (
    RULES,
    VERDICTS,
    Arrival,
    Document,
    Order,
    Step,
    Table,
    WorkflowError,
    decide,
    grant,
    release,
)
from surehook.core.workflow.draft import BRANCHES_MAX, is_newer
from surehook.core.workflow.explain import explain
from surehook.core.workflow.signing import SIGNING

NOW = 1_795_000_000_000
SHORT = {
    "sent": "document.sent", "viewed": "document.viewed", "signed": "document.signed",
    "countersigned": "document.countersigned", "completed": "document.completed", "declined": "document.declined",
    "voided": "document.voided", "expired": "document.expired", "replaced": "signer.replaced",
    "inserted": "approval.inserted", "certificate": "certificate.attached",
}  # fmt: skip
BUFFER = replace(SIGNING, order=Order(mode="buffer", wait_s=60, then="skip", count=3))
REFUSE = replace(SIGNING, order=Order(mode="buffer", wait_s=60, then="refuse", count=3))
FREE = replace(SIGNING, order=Order(mode="free"))
STOP = replace(SIGNING, on_conflict="stop")


class Story:
    """A document and what it is told, by short names; numbers count by themselves unless given."""

    met: ClassVar[set[tuple[str, str]]] = set()

    def __init__(self, table: Table = SIGNING) -> None:
        self.table = table
        self.document: Document | None = None
        self.now = NOW
        self.history: list[Step] = []
        self.counted = 0
        self.again = False
        self.wake_at: int | None = None

    def tell(
        self, what: str, number: int | None = -1, *, id: str | None = None, after_s: float = 0, **more
    ) -> Step:
        """Hand in one event, some time after the last; its own step."""
        self.now += round(after_s * 1000)
        if number == -1:
            self.counted += 1
            number = self.counted
        elif number is not None:
            self.counted = max(self.counted, number)
        event = Arrival(
            id=id or f"evt_{len(self.history)}_{number}", type=SHORT.get(what, what), sequence=number, **more
        )
        step = self._take(decide(self.table, self.document, event, self.now))
        assert step is not None
        return step

    def wait(self, seconds: float) -> None:
        self.now += round(seconds * 1000)
        self._take(decide(self.table, self.document, None, self.now))

    def release(self) -> None:
        assert self.document is not None
        self._take(release(self.table, self.document, self.now))

    def grant(self, token: str) -> None:
        assert self.document is not None
        self.document = grant(self.document, token)

    def _take(self, decision) -> Step | None:
        self.document, self.again, self.wake_at = decision.document, decision.again, decision.wake_at
        self.history += decision.steps
        Story.met.update((step.verdict, step.rule) for step in decision.steps)
        return decision.own

    @property
    def state(self) -> str:
        assert self.document is not None
        return self.document.state

    def party(self, name: str) -> str:
        assert self.document is not None
        return self.document.parties[name].state

    @property
    def last(self) -> tuple[str, str]:
        return self.history[-1].verdict, self.history[-1].rule


def begun(*what: str, table: Table = SIGNING) -> Story:
    story = Story(table)
    for one in what:
        story.tell(one)
    return story


def says(step: Step) -> tuple[str, str, str, str]:
    return step.verdict, step.rule, step.before, step.after


def test_a_document_goes_from_draft_to_completed():
    story = begun("sent", "viewed", "signed", "countersigned", "completed")
    assert [step.after for step in story.history] == [
        "sent",
        "viewed",
        "signed",
        "countersigned",
        "completed",
    ]
    assert {step.rule for step in story.history} == {"move"}


def test_the_same_event_again_is_a_duplicate_early_settled_or_stopped():
    story = begun("sent", table=STOP)
    assert story.tell("signed", 3, id="s").verdict == "early"
    assert says(story.tell("signed", 3, id="s")) == ("duplicate", "repeat", "sent", "sent")
    story.tell("expired", 2, id="x")
    story.tell("voided", 4, id="v")
    assert story.document.stopped.id == "v"
    for known in ("s", "x", "v"):
        assert story.tell("signed", 9, id=known).verdict == "duplicate"


def test_a_gap_is_waited_for_and_said():
    story = begun("sent")
    step = story.tell("signed", 3)
    assert says(step) == ("early", "gap", "sent", "sent")
    assert step.waits_for == 2
    story.tell("viewed", 2)
    assert [(one.sequence, one.released) for one in story.history[-2:]] == [(2, False), (3, True)]
    assert story.state == "signed"


def test_an_operator_lets_a_document_go_on_without_what_is_missing():
    story = begun("sent")
    story.tell("completed", 5)
    story.tell("viewed", 3)
    story.release()
    assert story.last == ("applied", "move")
    assert (story.state, story.document.next) == ("viewed", 4)
    story.release()
    assert story.last == ("applied", "leap")
    assert story.state == "completed"
    assert says(story.tell("signed", 4)) == ("stale", "settled_number", "completed", "completed")
    before = story.document
    story.release()
    assert story.document == before


def test_a_late_event_after_a_terminal_state_is_stale_whatever_it_carries():
    story = begun("sent", "signed", "completed")
    for what in ("viewed", "signed", "countersigned", "sent"):
        assert says(story.tell(what, party="zoe", version="9"))[:2] == ("stale", "terminal")
    assert says(story.tell("completed")) == ("no_op", "there_already", "completed", "completed")


@pytest.mark.parametrize("end", ["completed", "declined", "voided", "expired"])
def test_no_event_leaves_a_terminal_state_without_permission(end):
    for table in (SIGNING, BUFFER, FREE):
        for what in SHORT:
            story = begun("sent", "signed", end, table=table)
            story.tell(what, party="ana", replaces="bob")
            assert story.state == end, what


def test_two_ends_contradict_and_the_first_stands():
    story = begun("sent", "signed", "completed")
    assert says(story.tell("declined", party="ana")) == (
        "conflict",
        "contradiction",
        "completed",
        "completed",
    )


def test_of_two_ends_the_stronger_stands_where_the_table_ranks_them():
    table = replace(SIGNING, precedence=("completed", "voided"))
    story = begun("sent", "signed", "voided", table=table)
    assert says(story.tell("completed")) == ("applied", "precedence", "voided", "completed")
    assert says(story.tell("voided")) == ("conflict", "contradiction", "completed", "completed")
    story = begun("sent", "declined", table=table)
    assert says(story.tell("completed"))[:2] == ("conflict", "contradiction")


def test_what_lies_behind_is_stale_and_can_be_made_a_conflict():
    assert says(begun("sent", "signed").tell("viewed")) == ("stale", "past", "signed", "signed")
    story = begun("sent", "signed", table=replace(SIGNING, on_stale="conflict"))
    assert says(story.tell("viewed")) == ("conflict", "past", "signed", "signed")
    story = Story(replace(BUFFER, on_stale="conflict"))
    story.tell("certificate", 2)
    story.wait(60)
    assert says(story.tell("sent", 1))[:2] == ("conflict", "settled_number")


def test_states_do_not_leap_forward_without_proof():
    story = begun("sent")
    assert says(story.tell("completed")) == ("conflict", "unproven", "sent", "sent")


def test_free_order_leaps_forward_and_never_back():
    story = Story(FREE)
    assert says(story.tell("completed", None)) == ("applied", "leap", "draft", "completed")
    assert says(story.tell("signed", None))[:2] == ("stale", "terminal")


def test_two_events_that_say_the_same_are_a_move_and_a_no_op():
    story = begun("sent", "viewed")
    assert says(story.tell("viewed")) == ("no_op", "there_already", "viewed", "viewed")


def test_each_signer_moves_and_the_document_with_the_first():
    story = begun("sent")
    assert says(story.tell("viewed", party="ana"))[0:2] == ("applied", "move")
    step = story.tell("viewed", party="bob")
    assert says(step) == ("applied", "signer", "viewed", "viewed")
    assert (step.party_before, step.party_after) == ("pending", "viewed")
    assert says(story.tell("signed", party="bob"))[0:2] == ("applied", "move")
    assert says(story.tell("viewed", party="carl"))[0:2] == ("applied", "signer")
    assert says(story.tell("signed", party="bob"))[0:2] == ("no_op", "there_already")
    assert says(story.tell("viewed", party="bob"))[0:2] == ("stale", "past")
    assert (story.party("ana"), story.party("bob"), story.party("carl")) == ("viewed", "signed", "viewed")


def test_a_signer_who_signed_cannot_decline():
    story = begun("sent")
    story.tell("signed", party="ana")
    assert says(story.tell("declined", party="ana")) == ("conflict", "contradiction", "signed", "signed")


def test_a_declined_signer_signs_again_only_with_a_newer_workflow_version():
    story = begun("sent")
    story.tell("declined", party="ana", version="1")
    assert says(story.tell("signed", party="ana")) == ("conflict", "locked", "declined", "declined")
    assert says(story.tell("signed", party="ana", version="1"))[:2] == ("conflict", "locked")
    step = story.tell("signed", party="ana", version="2")
    assert says(step) == ("applied", "remedy", "declined", "signed")
    assert (step.party_before, step.party_after, story.document.version) == ("declined", "signed", "2")


def test_a_version_must_be_newer_than_that_in_which_the_signer_declined():
    story = begun("sent")
    story.tell("declined", party="ana")
    story.tell("sent", version="2")
    assert story.state == "sent"
    story.tell("declined", party="bob", version="2")
    story.tell("sent", version="3")
    assert says(story.tell("signed", party="bob", version="3"))[:2] == ("applied", "move")
    story.tell("declined", party="carl", version="3")
    assert says(story.tell("signed", party="carl", version="3"))[:2] == ("conflict", "locked")


def test_a_granted_token_lets_a_declined_signer_sign_once():
    story = begun("sent")
    story.tell("declined", party="ana")
    assert says(story.tell("signed", party="ana", token="open sesame"))[:2] == ("conflict", "locked")
    story.grant("open sesame")
    assert "open sesame" not in repr(story.document)
    assert says(story.tell("signed", party="ana", token="wrong"))[:2] == ("conflict", "locked")
    assert says(story.tell("signed", party="ana", token="open sesame"))[:2] == ("applied", "remedy")
    assert story.document.grants == ()
    story.tell("declined", party="bob")
    assert says(story.tell("signed", party="bob", token="open sesame"))[:2] == ("conflict", "locked")


def test_a_token_that_the_caller_found_valid_counts():
    story = begun("sent")
    story.tell("declined", party="ana")
    assert says(story.tell("signed", party="ana", remediated=True))[:2] == ("applied", "remedy")


def test_a_token_opens_only_what_the_table_lists():
    story = begun("sent", "signed", "completed")
    story.grant("t")
    assert story.tell("sent", token="t", version="9").verdict == "stale"
    assert len(story.document.grants) == 1


def test_a_document_holds_a_bounded_number_of_grants():
    story = begun("sent")
    for number in range(8):
        story.grant(f"token {number}")
    story.grant("token 3")
    with pytest.raises(WorkflowError, match="unused tokens"):
        story.grant("token 9")


def test_an_event_of_an_older_workflow_version_is_stale():
    story = begun("sent", "declined")
    story.tell("sent", version="2")
    assert says(story.tell("viewed", version="1")) == ("stale", "older_version", "sent", "sent")
    assert says(story.tell("viewed", version="two"))[:2] == ("conflict", "flaw")


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [("2", "1", True), ("10", "9", True), ("v2", "2", False), ("2.1", "2", True), ("2.0", "2", False), ("1", None, False),
     ("2", None, True), (None, "1", False), ("x", "1", False), ("1", "x", False)],
)  # fmt: skip
def test_versions_compare_by_their_numbers(version, than, newer):
    assert is_newer(version, than) is newer


def test_a_document_that_was_sent_again_does_not_free_those_who_declined():
    story = begun("sent")
    story.tell("declined", party="ana", version="1")
    story.tell("sent", version="2")
    step = story.tell("signed", party="ana")
    assert says(step) == ("conflict", "locked", "sent", "sent")
    assert step.reason.startswith("ana is declined")
    story.grant("t")
    assert says(story.tell("signed", party="ana", token="t"))[:2] == ("applied", "move")
    assert story.document.grants == ()


def test_a_token_is_used_up_where_no_signer_is_named():
    story = begun("sent", "voided")
    story.grant("t")
    assert says(story.tell("sent", token="t")) == ("applied", "remedy", "voided", "sent")
    assert story.document.grants == ()


def test_one_who_has_signed_may_reopen_what_another_declined():
    story = begun("sent")
    story.tell("signed", party="ana")
    story.tell("declined", party="bob")
    assert says(story.tell("signed", party="ana", version="2")) == ("applied", "remedy", "declined", "signed")
    assert story.party("ana") == "signed"


def test_who_was_replaced_cannot_act_and_who_came_can():
    story = begun("sent")
    story.tell("viewed", party="ana", id="seen")
    story.tell("viewed", party="carl")
    step = story.tell("replaced", party="bob", replaces="ana", cause="seen", id="swap")
    assert says(step) == ("applied", "branch", "viewed", "viewed")
    assert (story.party("ana"), story.party("bob")) == ("replaced", "pending")
    assert says(story.tell("signed", party="ana", cause="seen"))[:2] == ("stale", "replaced")
    assert says(story.tell("signed", party="ana"))[:2] == ("conflict", "contradiction")
    assert says(story.tell("signed", party="carl", cause="seen"))[:2] == ("applied", "move")
    assert says(story.tell("signed", party="bob", cause="swap"))[:2] == ("applied", "signer")


def test_who_came_back_does_not_answer_for_what_was_before():
    story = begun("sent")
    story.tell("viewed", party="ana", id="seen")
    story.tell("replaced", party="bob", replaces="ana", cause="seen", id="swap")
    story.tell("replaced", party="ana", replaces="bob", cause="swap", id="back")
    assert says(story.tell("signed", party="ana", cause="seen"))[:2] == ("stale", "replaced")
    assert says(story.tell("signed", party="ana", cause="back"))[:2] == ("applied", "move")


def test_who_takes_a_place_begins_anew():
    story = begun("sent")
    story.tell("viewed", party="carl", id="seen")
    story.tell("replaced", party="carl", replaces="ana", id="swap")
    assert story.party("carl") == "pending"
    assert says(story.tell("signed", party="carl", cause="seen"))[:2] == ("stale", "replaced")
    assert says(story.tell("signed", party="carl", cause="swap"))[:2] == ("applied", "move")


def test_a_signature_stands_when_the_signer_is_replaced():
    story = begun("sent")
    story.tell("signed", party="ana")
    story.tell("replaced", party="bob", replaces="ana")
    assert (story.party("ana"), story.party("bob")) == ("signed", "pending")


def test_one_who_declined_is_replaced_under_a_newer_version():
    story = begun("sent")
    story.tell("declined", party="ana")
    assert says(story.tell("replaced", party="bob", replaces="ana"))[:2] == ("conflict", "locked")
    assert says(story.tell("replaced", party="bob", replaces="ana", version="2")) == (
        "applied",
        "remedy",
        "declined",
        "sent",
    )
    assert (story.party("ana"), story.party("bob")) == ("replaced", "pending")


def test_a_replacement_must_say_who():
    assert says(begun("sent").tell("replaced", party="bob"))[:2] == ("conflict", "flaw")


def test_what_was_caused_before_a_document_was_voided_is_stale_after_it_is_sent_again():
    story = begun()
    story.tell("sent", id="first")
    story.tell("voided", id="void", cause="first")
    story.tell("sent", id="second", cause="void", version="2")
    assert story.state == "sent"
    assert says(story.tell("signed", party="ana", cause="first")) == ("stale", "ended_branch", "sent", "sent")
    assert says(story.tell("signed", party="ana", cause="second"))[:2] == ("applied", "move")
    assert says(story.tell("signed", party="bob"))[:2] == ("applied", "signer")


def test_what_has_no_cause_belongs_to_the_present_branch():
    story = begun("sent")
    story.tell("voided")
    story.tell("sent", id="second", version="2")
    assert says(story.tell("signed", cause="second"))[:2] == ("applied", "move")


def test_what_grew_from_an_ended_branch_has_ended_too():
    story = begun()
    story.tell("sent", id="first")
    story.tell("inserted", id="step", cause="first")
    story.tell("voided", id="void", cause="first")
    story.tell("sent", cause="void", version="2")
    assert says(story.tell("signed", cause="step"))[:2] == ("stale", "ended_branch")


def test_an_inserted_step_leaves_the_older_branch_alone():
    story = begun()
    story.tell("sent", id="first")
    assert says(story.tell("inserted", id="step", cause="first"))[:2] == ("applied", "branch")
    assert says(story.tell("viewed", cause="first"))[:2] == ("applied", "move")
    assert says(story.tell("signed", cause="step"))[:2] == ("applied", "move")


def test_after_an_end_the_workflow_goes_no_other_way():
    assert says(begun("sent", "signed", "completed").tell("inserted"))[:2] == ("stale", "terminal")


def test_an_unknown_cause_decides_nothing():
    assert says(begun("sent").tell("viewed", cause="a command of somebody"))[:2] == ("applied", "move")


def test_signers_are_bounded(monkeypatch):
    monkeypatch.setattr(draft, "PARTIES_MAX", 3)
    story = begun("sent")
    for name in ("ana", "bob", "carl"):
        assert story.tell("viewed", party=name).verdict == "applied"
    assert says(story.tell("signed", party="dora"))[:2] == ("conflict", "too_many_parties")
    assert says(story.tell("replaced", party="dora", replaces="ana"))[:2] == ("conflict", "too_many_parties")
    assert story.tell("certificate", party="dora").verdict == "informational"
    assert story.tell("signed", party="ana").verdict == "applied"
    assert story.tell("completed", party="dora").verdict == "applied", "it is no act of a signer"
    assert len(story.document.parties) == 3


def test_a_replacement_that_names_two_new_signers_needs_room_for_both(monkeypatch):
    monkeypatch.setattr(draft, "PARTIES_MAX", 3)
    story = begun("sent")
    for name in ("ana", "bob"):
        story.tell("viewed", party=name)
    assert says(story.tell("replaced", party="dora", replaces="eve"))[:2] == ("conflict", "too_many_parties")
    monkeypatch.setattr(draft, "PARTIES_MAX", 1)  # it has more by now, of a version without the bound
    assert story.tell("signed", party="ana").verdict == "applied"


def test_branches_are_bounded():
    story = begun("sent")
    for _ in range(BRANCHES_MAX - 1):
        assert story.tell("inserted").rule == "branch"
    assert says(story.tell("inserted"))[:2] == ("conflict", "too_many_branches")
    story = Story()
    story.tell("sent", id="root")
    table = replace(SIGNING, branches={**SIGNING.branches, "approval.inserted": "supersede"})
    story.table = table
    for number in range(3 * BRANCHES_MAX):
        story.tell("inserted", id=f"turn {number}")
    assert len(story.document.branches) == BRANCHES_MAX
    assert says(story.tell("viewed", cause="turn 70"))[:2] == ("stale", "ended_branch")
    assert says(story.tell("viewed"))[:2] == ("applied", "move")


def test_two_events_with_one_number_conflict_and_the_first_stands():
    story = begun("sent")
    assert says(story.tell("voided", 1, id="other")) == ("conflict", "same_number", "sent", "sent")
    story.tell("signed", 3)
    assert says(story.tell("voided", 3, id="third"))[:2] == ("conflict", "same_number")
    assert story.tell("voided", 3, id="third").verdict == "duplicate"


def test_numbers_do_not_begin_before_the_first():
    story = Story()
    assert says(story.tell("sent", 0)) == ("conflict", "before_first", "draft", "draft")
    assert says(story.tell("sent", -7))[:2] == ("conflict", "before_first")
    story = Story(replace(SIGNING, order=Order(first=0)))
    assert story.tell("sent", 0).verdict == "applied"


def test_a_settled_number_is_late_though_who_had_it_was_forgotten():
    story = begun("sent", table=replace(SIGNING, memory=1))
    story.tell("certificate", None)
    assert says(story.tell("viewed", 1))[:2] == ("stale", "settled_number")


def test_a_number_far_ahead_is_a_conflict_and_can_be_handed_in_again():
    story = begun("sent")
    assert says(story.tell("signed", 10_003, id="far"))[:2] == ("conflict", "jump")
    assert says(story.tell("signed", 10_003, id="far"))[:2] == ("conflict", "jump")
    assert says(story.tell("signed", 10_002))[:2] == ("early", "gap")


def test_strict_order_refuses_what_has_no_number_but_not_information():
    story = begun("sent")
    assert says(story.tell("viewed", None))[:2] == ("conflict", "no_number")
    assert says(story.tell("certificate", None))[:2] == ("informational", "informational")
    assert story.tell("viewed", 2).verdict == "applied"


def test_an_unreadable_event_is_a_conflict_in_its_turn():
    story = begun("sent")
    assert says(story.tell("signed", 2, flaw="data.signer is no text")) == (
        "conflict",
        "flaw",
        "sent",
        "sent",
    )
    assert says(story.tell("signed", None, flaw="sequence is no number"))[:2] == ("conflict", "flaw")
    assert story.tell("viewed", 3).verdict == "applied"


def test_an_unknown_type_is_a_conflict_unless_the_table_takes_it_as_information():
    assert says(begun("sent").tell("document.eaten"))[:2] == ("conflict", "unknown_type")
    story = begun("sent", table=replace(SIGNING, on_unknown="informational"))
    assert says(story.tell("document.eaten"))[:2] == ("informational", "unknown_type")
    assert story.document.next == 3


def test_other_names_of_a_type_are_the_same_type():
    assert says(begun("sent").tell("recipient.viewed", party="ana"))[:2] == ("applied", "move")


def test_a_document_can_stand_still_at_a_conflict_until_it_is_released():
    story = begun("sent", table=STOP)
    assert says(story.tell("completed", id="bad"))[:2] == ("conflict", "unproven")
    assert says(story.tell("viewed"))[:2] == ("early", "stopped")
    assert says(story.tell("signed"))[:2] == ("early", "stopped")
    assert says(story.tell("voided", 2, id="other"))[:2] == ("conflict", "same_number")
    assert (story.state, story.document.next) == ("sent", 2)
    story.release()
    assert [step.rule for step in story.history[-3:]] == ["released", "move", "move"]
    assert (story.state, story.document.next) == ("signed", 5)
    assert story.tell("completed", id="bad").verdict == "duplicate"


def test_a_conflict_without_a_number_stops_a_document_too():
    story = begun("sent", table=replace(BUFFER, on_conflict="stop"))
    story.tell("document.eaten", None, id="bad")
    assert says(story.tell("viewed", 2))[:2] == ("early", "stopped")
    assert says(story.tell("signed", None))[:2] == ("early", "stopped")
    assert story.wake_at is None
    story.release()
    assert (story.state, story.document.next) == ("signed", 3)


def test_a_full_line_hands_events_back_and_loses_none():
    story = begun("sent", table=replace(SIGNING, order=Order(count=2)))
    story.tell("signed", 3)
    story.tell("completed", 4)
    assert says(story.tell("certificate", 5, id="back"))[:2] == ("early", "line_full")
    assert story.again
    story.tell("viewed", 2)
    assert (story.state, story.document.next) == ("completed", 5)
    assert story.tell("certificate", 5, id="back").verdict == "informational"
    assert not story.again


def test_buffer_gives_numbers_up_after_the_wait_and_goes_on():
    story = begun("sent", table=BUFFER)
    story.tell("completed", 5)
    assert story.wake_at == NOW + 60_000
    story.wait(59.999)
    assert story.state == "sent"
    story.wait(0.001)
    assert [(step.verdict, step.rule) for step in story.history[-2:]] == [
        ("no_op", "gave_up"),
        ("applied", "leap"),
    ]
    assert (story.state, story.wake_at) == ("completed", None)
    assert says(story.tell("signed", 3))[:2] == ("stale", "settled_number")


def test_one_gap_excuses_one_leap():
    story = Story(BUFFER)
    story.tell("viewed", 2)
    story.wait(60)
    assert story.last == ("applied", "leap")
    assert says(story.tell("completed", 3))[:2] == ("conflict", "unproven")


def test_no_event_waits_longer_than_it_may_for_the_sake_of_another():
    story = begun("sent", table=BUFFER)
    story.tell("signed", 5)
    story.tell("viewed", 3, after_s=30)
    story.wait(30)
    assert (story.state, story.document.next) == ("signed", 6)


def test_who_comes_after_the_wait_is_late_though_nobody_looked():
    story = begun("sent", table=BUFFER)
    story.tell("signed", 3)
    assert says(story.tell("viewed", 2, after_s=61))[:2] == ("stale", "settled_number")
    assert story.state == "signed"


def test_buffer_can_refuse_what_waited_too_long_and_take_it_again():
    story = begun("sent", table=REFUSE)
    story.tell("signed", 3, id="s")
    story.wait(60)
    assert story.last == ("conflict", "waited_too_long")
    assert story.history[-1].released
    assert (story.state, story.document.next, story.document.waiting) == ("sent", 2, ())
    story.tell("viewed", 2)
    assert story.tell("signed", 3, id="s").verdict == "applied"


@pytest.mark.parametrize("table", [BUFFER, REFUSE], ids=["skip", "refuse"])
def test_a_full_line_hands_back_the_last_and_gives_up_nothing(table):
    story = begun("sent", table=table)
    for number in (5, 4, 7, 9):
        story.tell("certificate", number)
    assert story.last == ("early", "line_full")
    assert story.again
    assert story.document.next == 2
    assert [one.event.sequence for one in story.document.waiting] == [4, 5, 7]


def test_without_a_number_buffer_waits_for_the_state_an_event_leads_from():
    story = Story(BUFFER)
    story.tell("sent", None)
    assert says(story.tell("completed", None))[:2] == ("early", "not_yet")
    story.tell("signed", None)
    assert [step.after for step in story.history[-2:]] == ["signed", "completed"]
    story = Story(BUFFER)
    story.tell("sent", None)
    story.tell("completed", None)
    story.wait(60)
    assert story.last == ("applied", "leap")


def test_memory_is_bounded_and_what_is_forgotten_is_late():
    story = Story(replace(SIGNING, memory=4))
    for number in range(1, 12):
        story.tell("certificate", number, id=f"evt {number}")
    assert len(story.document.seen) == 4
    assert story.tell("certificate", 11, id="evt 11").verdict == "duplicate"
    assert says(story.tell("certificate", 3, id="evt 3"))[:2] == ("stale", "settled_number")


def test_a_state_that_the_table_lost_is_an_error():
    with pytest.raises(WorkflowError, match="no state of signing"):
        decide(SIGNING, Document(state="notarised"), None, NOW)


def test_every_rule_and_verdict_has_a_story(monkeypatch):
    """The stories above, told once more: a rule that none of them meets is dead or untested."""
    from tests.core import test_workflow_words as words

    for name, function in [*globals().items(), *vars(words).items()]:
        if name.startswith("test_") and function.__code__.co_argcount == 0:
            function()
    test_signers_are_bounded(monkeypatch)
    assert {rule for _, rule in Story.met} == set(RULES)
    assert {verdict for verdict, _ in Story.met} == set(VERDICTS)


def test_a_history_reads_as_lines():
    story = begun("sent")
    story.tell("signed", 3, party="ana", id="evt_s")
    story.tell("viewed", 2, party="ana", id="evt_v")
    lines = explain(story.history, story.document)
    assert lines[0] == f"by table {SIGNING.label}:"
    assert lines[2] == (
        "2026-11-18T11:06:40.000Z  #3 document.signed evt_s  early  sent stays: number 3, while 2 is missing [gap]"
    )
    assert lines[4] == (
        "2026-11-18T11:06:40.000Z  #3 document.signed evt_s  applied after it waited  viewed → signed; "
        "ana: viewed → signed [move]"
    )
    assert lines[-2:] == ["now signed; number 4 comes next", "  ana is signed"]
    story.tell("completed", 9, id="evt_c")
    assert explain([], story.document)[-1] == (
        "  waiting since 2026-11-18T11:06:40.000Z: #9 document.completed evt_c"
    )
