"""Tables: what is refused and why, and that text carries them whole."""

from __future__ import annotations

import copy
import json

import pytest
from msgspec.structs import replace

from surehook.core.workflow.check import FLAWS
from surehook.core.workflow.data import parse_table, render_table, table_of
from surehook.core.workflow.decide import Arrival, Fields, Order, Table, WorkflowError, decide
from surehook.core.workflow.signing import SIGNING
from surehook.inbox.workflow_diagram import arrows, draw_mermaid, draw_mermaid_parties, draw_text

LEAVE = {
    "document_type": "leave",
    "states": ["asked", "granted", "refused"],
    "initial": "asked",
    "terminal": ["granted", "refused"],
    "moves": {"leave.granted": {"asked": "granted"}, "leave.refused": {"asked": "refused"}},
}
PARTIES = {
    "states": ["away", "here", "gone"],
    "initial": "away",
    "terminal": ["here", "gone"],
    "moves": {"boss.came": {"away": "here"}, "boss.left": {"away": "gone"}},
}


def changed(**changes) -> dict:
    return {**copy.deepcopy(LEAVE), **changes}


def moves(**more) -> dict:
    return {**LEAVE["moves"], **{f"leave.{kind}": ways for kind, ways in more.items()}}


WRONG = {
    "a name of nothing": (changed(document_type=""), "bad_name", "document_type"),
    "a state called star": (changed(states=[*LEAVE["states"], "*"]), "bad_name", "states.3"),
    "a type of nothing": (changed(informational=[" "]), "bad_name", "informational. "),
    "a misspelt target": (changed(moves=moves(asked={"asked": "grnted"})), "unknown_state", "moves.leave.asked.asked"),
    "a misspelt source": (changed(moves=moves(asked={"akd": "granted"})), "unknown_state", "moves.leave.asked.akd"),
    "a misspelt beginning": (changed(initial="askd"), "unknown_state", "initial"),
    "a misspelt end": (changed(terminal=["granted", "refsed"]), "unknown_state", "terminal.1"),
    "no end": (changed(terminal=[]), "no_terminal", "terminal"),
    "an end at the beginning": (changed(initial="granted"), "initial_is_terminal", "initial"),
    "a state nobody reaches": (changed(states=[*LEAVE["states"], "lost"]), "unreachable_state", "states"),
    "a state nobody leaves": (
        changed(states=[*LEAVE["states"], "lost"], moves=moves(lost={"asked": "lost"})), "dead_end", "states"
    ),
    "a move out of an end": (
        changed(moves=moves(again={"granted": "asked"})), "move_out_of_terminal", "moves.leave.again.granted"
    ),
    "a remedy where none is needed": (
        changed(remedies={"leave.again": {"asked": "granted"}}), "remedy_not_terminal", "remedies.leave.again.asked"
    ),
    "star beside a state": (changed(moves=moves(ended={"*": "refused", "asked": "granted"})), "ambiguous_move", "moves.leave.ended"),
    "information that moves": (changed(informational=["leave.granted"]), "ambiguous_move", "informational"),
    "an alias of another meaning": (changed(aliases={"leave.granted": "leave.refused"}), "ambiguous_move", "aliases.leave.granted"),
    "a state twice": (changed(states=[*LEAVE["states"], "asked"]), "ambiguous_move", "states"),
    "moves that go round": (
        changed(
            states=[*LEAVE["states"], "seen"],
            moves=moves(seen={"asked": "seen"}, unseen={"seen": "asked"}, granted={"seen": "granted"}),
        ),
        "round_trip",
        "moves",
    ),
    "an alias of nothing": (changed(aliases={"urlaub": "leave.gone"}), "unknown_type", "aliases.urlaub"),
    "strict without numbers": (changed(fields={"document": "id"}), "strict_without_sequence", "fields.sequence"),
    "standing still where nothing waits": (
        changed(order={"mode": "free"}, on_conflict="stop"), "stop_without_order", "on_conflict"
    ),
    "buffer without a bound": (changed(order={"mode": "buffer", "then": "skip"}), "bad_bound", "order.wait_s"),
    "buffer without a rule": (changed(order={"mode": "buffer", "wait_s": 1}), "bad_bound", "order.then"),
    "a wait that nothing ends": (changed(order={"mode": "free", "wait_s": 1}), "bad_bound", "order"),
    "a line without places": (changed(order={"count": 0}), "bad_bound", "order.count"),
    "no memory": (changed(memory=0), "bad_bound", "memory"),
    "precedence of what is no end": (changed(precedence=["asked"]), "bad_precedence", "precedence"),
    "replacing without parties": (changed(branches={"boss.left": "replace"}), "bad_parties", "branches"),
    "replaced and still going": (
        changed(parties={**PARTIES, "replaced": "away"}, fields={"document": "id", "sequence": "n", "party": "boss"}),
        "bad_parties",
        "parties.replaced",
    ),
    "parties that nobody names": (
        changed(parties=PARTIES, fields={"document": "id", "sequence": "n"}), "bad_parties", "fields.party"
    ),
    "a flaw of the parties' table": (
        changed(parties={**PARTIES, "moves": {"boss.came": {"away": "here"}}}), "unreachable_state", "parties.states"
    ),
    "a path with a hole": (changed(fields={"document": "data..id", "sequence": "n"}), "bad_field", "fields.document"),
}  # fmt: skip


@pytest.mark.parametrize(("data", "code", "field"), WRONG.values(), ids=WRONG)
def test_a_wrong_table_is_refused_with_the_place(data, code, field):
    with pytest.raises(WorkflowError) as caught:
        table_of(data)
    assert (code, field) in [(flaw.code, flaw.field) for flaw in caught.value.flaws]
    assert f"{field}: " in str(caught.value)


def test_every_flaw_has_an_example():
    assert {code for _, code, _ in WRONG.values()} == set(FLAWS)


def test_the_table_of_which_they_are_changes_is_right():
    assert table_of(LEAVE).types == {"leave.granted", "leave.refused"}


def test_all_flaws_are_told_at_once():
    with pytest.raises(WorkflowError) as caught:
        table_of(changed(memory=0, precedence=["asked"], fields={"document": "id"}))
    assert [flaw.code for flaw in caught.value.flaws] == [
        "strict_without_sequence",
        "bad_bound",
        "bad_precedence",
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"document_type": "x"}, "missing required field"),
        (changed(order={"mode": "loose"}), "order.mode"),
        (changed(colour="red"), "colour"),
        (changed(memory="many"), "memory"),
    ],
)
def test_data_of_another_shape_is_refused(data, words):
    with pytest.raises(WorkflowError, match=words):
        table_of(data)


@pytest.mark.parametrize(
    ("wrong", "field", "hint"),
    [
        ({"order": Order(mode="strikt")}, "order.mode", "strict, buffer or free"),
        ({"order": Order(wait_s="3")}, "order.wait_s", None),
        ({"order": "strict"}, "order", "order=Order(…)"),
        ({"on_stale": "conflicts"}, "on_stale", "record or conflict"),
        ({"states": "ab"}, "states", None),
        ({"fields": {"document": "id"}}, "fields", "fields=Fields(…)"),
        ({"moves": {"a": "b"}}, "moves[...]", None),
        ({"aliases": {"a": object()}}, "", None),
    ],
)
def test_a_value_of_another_type_is_refused_where_python_has_written_it(wrong, field, hint):
    with pytest.raises(WorkflowError) as caught:
        replace(SIGNING, **wrong)
    assert (caught.value.field, caught.value.hint) == (field, hint)


@pytest.mark.parametrize("form", ["json", "toml"])
@pytest.mark.parametrize("table", [SIGNING, table_of(LEAVE)], ids=["signing", "leave"])
def test_a_table_written_and_read_is_the_same(table, form):
    again = parse_table(render_table(table, form), form)
    assert again == table
    assert again.digest == table.digest


def test_the_digest_is_of_what_a_table_does_and_not_of_how_it_is_written():
    turned = {key: LEAVE[key] for key in reversed(LEAVE)}
    turned["moves"] = dict(reversed(LEAVE["moves"].items()))
    turned["memory"] = 64
    assert table_of(turned).digest == table_of(LEAVE).digest
    assert table_of(changed(memory=65)).digest != table_of(LEAVE).digest


def test_a_table_changed_under_its_digest_is_refused():
    data = json.loads(render_table(SIGNING))
    data["moves"]["document.completed"]["viewed"] = "completed"
    with pytest.raises(WorkflowError, match="digest"):
        table_of(data)


def test_the_signing_table_of_version_2_is_never_changed():
    """Services compare digests. Who changes the table gives it a new version."""
    assert (SIGNING.version, SIGNING.digest[:12]) == ("2", "ab492a58a90c")


@pytest.mark.parametrize(
    ("text", "form", "words"),
    [
        ('{"moves": {"a": {"x": "y", "x": "z"}}}', "json", "written twice"),
        ('moves.a.x = "y"\nmoves.a.x = "z"', "toml", "TOML"),
        ("[1]", "json", "object"),
        ("{", "json", "JSON"),
        ("[" * 100_000, "json", "JSON"),
        (" " * 2_000_000, "json", "characters"),
    ],
)
def test_a_text_that_cannot_be_one_table_is_refused(text, form, words):
    with pytest.raises(WorkflowError, match=words):
        parse_table(text, form)


def test_star_is_every_open_state():
    flow = replace(SIGNING, memory=63).flow
    assert set(flow.moves["document.voided"]) == {"draft", "sent", "viewed", "signed", "countersigned"}


@pytest.mark.parametrize("table", [SIGNING, table_of(LEAVE)], ids=["signing", "leave"])
def test_a_diagram_shows_every_state_and_every_move(table):
    text, mermaid = draw_text(table), draw_mermaid(table)
    for state in table.states:
        assert state in text
        assert state in mermaid
    for one in arrows(table.moves) + arrows(table.remedies):
        source = "open_state" if one.source == "*" else one.source
        assert f"{source} --> {one.target}: {' | '.join(one.types)}" in mermaid
        for kind in one.types:
            assert kind in text


def test_a_branch_may_lead_back_and_what_is_late_stays_late():
    seen = moves(seen={"asked": "seen"}, unseen={"seen": "asked"}, granted={"seen": "granted"})
    table = table_of(
        changed(
            states=[*LEAVE["states"], "seen"],
            moves=seen,
            branches={"leave.unseen": "supersede"},
            order={"mode": "free"},
        )
    )
    document, verdicts = None, []
    for number, kind in enumerate(["seen", "unseen", "seen", "granted", "seen"]):
        decision = decide(table, document, Arrival(id=str(number), type=f"leave.{kind}"), 0)
        document = decision.document
        verdicts.append((decision.verdict, document.state))
    assert [verdict for verdict, _ in verdicts] == ["applied", "applied", "applied", "applied", "stale"]
    assert [state for _, state in verdicts] == ["seen", "asked", "seen", "granted", "granted"]
    assert table.flow.beyond["seen"] == {"granted"}


def test_a_mermaid_diagram_takes_any_name():
    data = changed(
        states=["asked", "granted", "end", 'not "now": later'],
        terminal=["granted", "end", 'not "now": later'],
    )
    data["moves"] = {
        "leave.granted": {"asked": "granted"},
        "leave:x": {"asked": "end"},
        "y": {"asked": 'not "now": later'},
    }
    drawn = draw_mermaid(table_of(data))
    assert "state \"not 'now': later\" as state_3" in drawn
    assert "asked --> state_2: leave∶x" in drawn


def test_the_signers_have_a_diagram_of_their_own():
    assert "viewed --> signed: document.signed | document.countersigned" in draw_mermaid_parties(SIGNING)
    assert draw_mermaid_parties(table_of(LEAVE)) is None


def test_a_table_is_made_of_values_as_well():
    table = Table(
        document_type="leave",
        states=("asked", "granted"),
        initial="asked",
        terminal=("granted",),
        moves={"leave.granted": {"asked": "granted"}},
        order=Order(mode="buffer", wait_s=30, then="refuse"),
        fields=Fields(document="data.id", sequence="data.n"),
    )
    assert table.label.startswith("leave 1 ")
