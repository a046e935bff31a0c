"""What holds for every table and every stream of events, however odd."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from surehook.core.workflow.data import parse_table, render_table
from surehook.core.workflow.decide import (
    Arrival,
    Document,
    OperatorCommand,
    Order,
    Parties,
    Step,
    Table,
    asked,
    decide,
    grant,
    is_undone,
)
from surehook.inbox.workflow_diagram import draw_mermaid, draw_text
from tests.budget import examples

KINDS = [f"t{number}" for number in range(6)]
NAMES = ["ana", "bob"]
few = settings(max_examples=examples(150), deadline=None)


@st.composite
def flows(draw, prefix: str = "s") -> dict:
    """States in a row, moves only to the right, a way in and a way out for each."""
    opened = draw(st.integers(1, 4))
    ends = draw(st.integers(1, 3))
    states = [f"{prefix}{number}" for number in range(opened + ends)]
    ways: dict[str, dict[str, str]] = {}

    def add(source: int, target: int) -> None:
        kind = draw(st.sampled_from(KINDS))
        ways.setdefault(kind, {}).setdefault(states[source], states[target])

    def leads(source: int, target: int) -> bool:
        return any(each.get(states[source]) == states[target] for each in ways.values())

    for target in range(1, len(states)):
        source = draw(st.integers(0, min(target, opened) - 1))
        while not leads(source, target):
            kind = draw(st.sampled_from(KINDS))
            if states[source] in ways.get(kind, {}):
                kind = f"k{source}_{target}"
            ways.setdefault(kind, {})[states[source]] = states[target]
    for source in range(opened):
        if not any(leads(source, target) for target in range(source + 1, len(states))):
            ways.setdefault(f"k{source}", {})[states[source]] = states[-1]
    for _ in range(draw(st.integers(0, 4))):
        source = draw(st.integers(0, opened - 1))
        add(source, draw(st.integers(source, len(states) - 1)))
    remedies = {}
    if draw(st.booleans()):
        remedies = {draw(st.sampled_from(KINDS)): {states[opened]: draw(st.sampled_from(states[:opened]))}}
    return {
        "states": tuple(states),
        "initial": states[0],
        "terminal": tuple(states[opened:]),
        "moves": ways,
        "remedies": remedies,
    }


@st.composite
def orders(draw) -> Order:
    mode = draw(st.sampled_from(["strict", "buffer", "free"]))
    count = draw(st.integers(1, 5))
    if mode == "strict" and draw(st.booleans()):
        return Order(count=count, wait_s=draw(st.sampled_from([1, 2.0, 0.7, 5])))
    if mode != "buffer":
        return Order(mode=mode, count=count, then="wait" if mode == "strict" else None)
    return Order(
        mode=mode,
        count=count,
        wait_s=draw(st.sampled_from([1, 2.0, 0.7, 5])),
        then=draw(st.sampled_from(["skip", "refuse"])),
    )


@st.composite
def tables(draw) -> Table:
    order = draw(orders())
    parties = draw(st.none() | flows("p").map(lambda flow: Parties(**flow, replaced=flow["terminal"][-1])))
    flow = draw(flows())
    rules = ["supersede", "beside"] if parties is None else ["supersede", "beside", "replace"]
    return Table(
        document_type="any",
        **flow,
        parties=parties,
        order=order,
        branches={"b": draw(st.sampled_from(rules))},
        informational=("info",),
        precedence=flow["terminal"] if draw(st.booleans()) else (),
        on_stale=draw(st.sampled_from(["record", "conflict"])),
        on_conflict="record" if order.mode == "free" else draw(st.sampled_from(["record", "stop"])),
        on_unknown=draw(st.sampled_from(["conflict", "informational"])),
        memory=draw(st.integers(1, 12)),
        rejected=draw(rejections(flow)),
    )


@st.composite
def rejections(draw, flow: dict) -> dict:
    """Where a rejected event leads, for some types in some states."""
    kinds = st.sampled_from([*flow["moves"], "b"])
    states = st.sampled_from(flow["states"])
    return draw(st.dictionaries(kinds, st.dictionaries(states, states, min_size=1, max_size=3), max_size=3))


def happenings(ids: int = 12, numbers: bool = True) -> st.SearchStrategy[Arrival]:
    """Events from a small world, so that they repeat, contradict and refer to each other."""
    some = st.integers(0, ids).map(lambda number: f"e{number}")
    return st.builds(
        Arrival,
        id=some,
        type=st.sampled_from([*KINDS, "b", "info", "what"]),
        sequence=st.none() | st.integers(-1, 9) | st.just(2**62) if numbers else st.none(),
        version=st.none() | st.sampled_from(["1", "2", "v3", "odd"]),
        cause=st.none() | some,
        party=st.none() | st.sampled_from(NAMES),
        replaces=st.none() | st.sampled_from(NAMES),
        token=st.none() | st.sampled_from("tu"),
        remediated=st.booleans(),
        flaw=st.none() | st.none() | st.just("odd"),
    )


streams = st.lists(st.tuples(st.none() | happenings(), st.integers(0, 3000)), max_size=25)


words = st.lists(st.tuples(st.integers(0, 25), st.sampled_from(["release", "grant", "undo"])), max_size=6)


@few
@given(tables(), streams, words)
def test_no_stream_of_events_and_words_breaks_a_document(table, stream, said):
    document: Document | None = None
    moves: list[Step] = []
    now = 0
    for place, (event, wait) in enumerate(stream):
        now += wait
        for _, what in [one for one in said if one[0] == place]:
            document = heard(document, what, moves, now)
        before = msgspec.json.encode(document)
        decision = decide(table, document, event, now)
        assert msgspec.json.encode(document) == before
        assert decide(table, document, event, now) == decision
        document = check(table, document, event, decision, now)
        moves += [step for step in decision.steps if step.is_move]


def test_a_wait_that_was_over_while_the_document_stood_still_is_due_as_it_goes_on():
    table = Table(
        document_type="any",
        states=("s0", "s1"),
        initial="s0",
        terminal=("s1",),
        moves={"t0": {"s0": "s1"}},
        order=Order(wait_s=1),
        on_conflict="stop",
    )
    document = decide(table, None, Arrival(id="e1", type="t1", sequence=1), 0).document
    document = decide(table, document, Arrival(id="e3", type="t0", sequence=3), 0).document
    stands = decide(table, document, None, 1_000)
    assert stands.document.stopped is not None and stands.wake_at is None
    goes_on = decide(table, stands.document, Arrival(id="e1", type="t0", sequence=1), 1_000)
    assert goes_on.document.stopped is None and goes_on.wake_at == 1_000
    ended = decide(table, goes_on.document, None, 1_000)
    assert [step.rule for step in ended.steps] == ["waited_too_long"]
    assert ended.wake_at is None


def heard(document: Document | None, what: str, moves: list[Step], now: int) -> Document | None:
    """The document after a word, where that can be said of it."""
    if document is None or (what == "undo" and not moves):
        return document
    if what == "grant":
        return grant(document, "t")
    return asked(
        document, OperatorCommand(what=what, at=now, by="ana", step=moves[-1] if what == "undo" else None)
    )


def check(table, before: Document | None, event, decision, now: int) -> Document:
    """What holds for every single decision."""
    document = decision.document
    stored = msgspec.json.encode(document)
    assert msgspec.json.decode(stored, type=Document) == document
    assert document.state in table.states
    assert len(document.seen) <= table.memory
    assert len(document.waiting) <= table.order.count
    assert before is None or document.next >= before.next
    assert (event is None) == (decision.own is None)
    assert document.words == ()
    if before is not None:
        spent = len(before.grants) - len(document.grants)
        assert spent in (0, 1)
        carriers = {event.token if event is not None else None, *(one.event.token for one in before.waiting)}
        assert not spent or "t" in carriers
        if any(word.what == "release" for word in before.words) and table.order.count > len(document.waiting):
            assert [
                step for step in decision.steps if step.rule in ("gave_up", "released") or step.released
            ] or not (before.waiting or before.stopped)
    stood_still = before is not None and before.stopped is not None  # meanwhile, no wait ends
    assert decision.wake_at is None or decision.wake_at > now or (stood_still and document.stopped is None)
    state = table.initial if before is None else before.state
    for step in decision.steps:
        assert step.before == state
        assert step.before == step.after or step.verdict == "applied"
        assert step.is_move == (step.verdict == "applied" and step.rule != "undone")
        if step.before in table.terminal and step.after != step.before:
            assert step.rule in ("remedy", "precedence", "undone")
        state = step.after
    assert state == document.state
    for step in decision.steps:
        if step.rule == "undone" and decision.own is None:
            assert is_undone(document, step.event)
    if decision.verdict == "duplicate":
        assert decision.own.before == decision.own.after
    waited = {one.event.id for one in before.waiting} if before is not None else set()
    waits = {one.event.id for one in document.waiting}
    left = {step.event for step in decision.released}
    assert waited - waits <= left
    assert left <= waited | {event.id if event else ""}
    return document


def lived(table: Table, stream: list[tuple[Arrival | None, int]]) -> tuple[Document | None, list[tuple]]:
    document, told = None, []
    for event, now in stream:
        decision = decide(table, document, event, now)
        document = decision.document
        told += [(step.event, step.verdict, step.before, step.after, step.rule) for step in decision.steps]
    return document, told


@few
@given(tables(), streams, st.lists(st.integers(0, 40_000), max_size=20))
def test_it_makes_no_difference_when_the_clock_is_looked_at(table, stream, ticks):
    now, timed = 0, []
    for event, wait in stream:
        now += wait
        timed.append((event, now))
    timed.append((None, 100_000))
    more = sorted([*timed, *((None, tick) for tick in ticks)], key=lambda one: one[1])
    assert lived(table, more) == lived(table, timed)


@few
@given(tables(), st.data())
def test_in_strict_order_arrival_makes_no_difference(table, data):
    table = msgspec.structs.replace(table, order=Order(count=10), memory=20)
    kinds = data.draw(st.lists(happenings(numbers=False), min_size=1, max_size=8))
    events = [
        msgspec.structs.replace(event, id=f"e{number}", sequence=number)
        for number, event in enumerate(kinds, start=1)
    ]
    mixed = data.draw(st.permutations(events))
    in_order, settled = lived(table, [(event, 0) for event in events])
    document, told = lived(table, [(event, 0) for event in mixed])
    assert document == in_order
    # At a conflict that stops the document the rest is early, in whichever order it comes.
    assert [one for one in told if one[1] != "early"] == [one for one in settled if one[1] != "early"]


@few
@given(tables(), streams, st.data())
def test_a_repeat_changes_nothing(table, stream, data):
    table = msgspec.structs.replace(table, memory=64)
    document: Document | None = None
    for event, _ in stream:
        decision = decide(table, document, event, 0)
        if event is not None and decision.own.rule not in ("jump", "line_full", "waited_too_long"):
            again = decide(table, decision.document, event, 0)
            assert again.document == decision.document
            kept = [decision.document.stopped, *(one.event for one in decision.document.waiting)]
            # One that waits by its number is none that is repeated without: that has been decided on, and is decided on anew.
            is_unread = is_undone(decision.document, event.id) and not any(
                one and one.is_same(event) and (one.sequence is None) == (event.sequence is None)
                for one in kept
            )
            assert again.verdict == (decision.own.verdict if is_unread else "duplicate")
        document = decision.document


@few
@given(tables())
def test_every_table_goes_through_text_and_can_be_drawn(table):
    for form in ("json", "toml"):
        assert parse_table(render_table(table, form), form) == table
    for drawn in (draw_text(table), draw_mermaid(table)):
        assert all(state in drawn for state in table.states)


@few
@given(
    st.lists(
        st.text(max_size=5).filter(lambda name: name.isprintable() and name.strip() == name != ""), max_size=4
    )
)
def test_any_name_goes_through_text(names):
    table = Table(
        document_type="any", states=("a", "b"), initial="a", terminal=("b",), moves={"something": {"a": "b"}},
        informational=tuple(name for name in names if name != "*"),
    )  # fmt: skip
    for form in ("json", "toml"):
        assert parse_table(render_table(table, form), form) == table


def test_a_step_says_by_which_table_it_was_made():
    table = Table(
        document_type="any", states=("a", "b"), initial="a", terminal=("b",), moves={"kind": {"a": "b"}}
    )
    (step,) = decide(table, None, Arrival(id="e", type="kind", sequence=1), 0).steps
    assert isinstance(step, Step)
    assert step.table == table.label
