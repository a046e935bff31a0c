"""Flaws of a table, reported when it is defined: all of them at once, each with its place and a way out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from surehook.core.errors import SurehookError
from surehook.core.workflow.flow import ANY, Flow, reach
from surehook.core.workflow.table_values import Fields, Order, Parties, TableValues

COUNT_MAX = 256  # waiting events are stored with the document: 40 KiB at most of usual size
MEMORY_MAX = 1024  # 48 KiB a document
WAIT_S_MAX = 30 * 86_400  # a month; who can wait longer can wait for ever: strict, `then="wait"`
NAME_CHARS = 128
_INDEX = re.compile(r"\[\d*\]")  # as other notations of paths have them


class Flaw(NamedTuple):
    """One thing that is wrong. `code` is one of FLAWS, `field` the path in the table."""

    code: str
    field: str
    text: str


FLAWS = {
    "bad_name": "a name is empty, too long or not visible text",
    "unknown_state": "a state is named that `states` does not list",
    "no_terminal": "nothing ever ends",
    "initial_is_terminal": "it ends before it begins",
    "unreachable_state": "no way leads to a state",
    "dead_end": "a state that is not terminal has no way out",
    "move_out_of_terminal": "a terminal state is left by a move; only `remedies` may do that",
    "remedy_not_terminal": "a remedy begins in a state that is not terminal",
    "ambiguous_move": "one event in one state could mean two things",
    "round_trip": "moves go round, so that late and early cannot be told apart",
    "unknown_type": "an event type is named that no move, remedy, branch or list of the table has",
    "strict_without_sequence": "strict order needs sequence numbers",
    "stop_without_order": "a document can only stand still where events wait for their turn",
    "bad_bound": "a number is outside its bounds, or missing",
    "bad_precedence": "precedence ranks terminal states, each once",
    "bad_parties": "the parties' table does not fit",
    "bad_field": "a path is empty",
}


CHOICES = {
    "order.mode": "strict, buffer or free",
    "order.then": "refuse, skip or wait",
    "on_stale": "record or conflict",
    "on_conflict": "record or stop",
    "on_unknown": "conflict or informational",
}


_PARTS: dict[str, type] = {"order": Order, "fields": Fields, "parties": Parties}


class WorkflowError(SurehookError):
    """A table is defined in a way that cannot be right, or a workflow is used as it cannot be.

    code `bad_workflow`; `flaws` is everything that is wrong with a table, `field` the place of the first,
    `hint` what to do.
    """

    def __init__(
        self, detail: str, *, field: str = "", hint: str | None = None, flaws: tuple[Flaw, ...] = ()
    ) -> None:
        where = f"{field}: " if field else ""
        super().__init__(where + detail + (f"\n  hint: {hint}" if hint else ""))
        self.code = "bad_workflow"
        self.detail = detail
        self.field = field
        self.hint = hint
        self.flaws = flaws


def misshapen(error: msgspec.ValidationError) -> WorkflowError:
    """Say where a table has a value that no table has."""
    text, _, path = str(error).partition(" - at ")
    field = path.strip("`").removeprefix("$.").removeprefix("$")
    return WorkflowError(text, field=field, hint=CHOICES.get(field))


def check(table: TableValues) -> None:
    """Raise WorkflowError with every flaw of the table, if it has any. Written in Python, it may have values of any type."""
    for name, kind in _PARTS.items():
        part: object = getattr(table, name)
        if not isinstance(part, kind) and not (part is None and name == "parties"):
            raise WorkflowError(
                f"a {type(part).__name__} is no {kind.__name__}",
                field=name,
                hint=f"{name}={kind.__name__}(…)",
            )
    try:
        msgspec.convert(msgspec.to_builtins(table), TableValues)
    except msgspec.ValidationError as error:
        raise misshapen(error) from None
    except TypeError as error:
        raise WorkflowError(f"a value of the table is not plain data: {error}") from None
    found = tuple(flaws(table))
    if found:
        text = "\n".join(f"{flaw.field}: {flaw.text} ({flaw.code})" for flaw in found)
        raise WorkflowError(text, flaws=found)


def flaws(table: TableValues) -> Iterator[Flaw]:
    """Everything that is wrong with a table, in the order of its keys."""
    yield from _names(table)
    yield from _states(table, "", turning=table.branches, free_ways={})
    if table.parties is not None:
        yield from _states(table.parties, "parties.", turning=(), free_ways=_replaced(table.parties))
        yield from _party_rules(table)
    yield from _types(table)
    yield from _rejected(table)
    yield from _order(table)
    yield from _conflicts(table)


def _names(table: TableValues) -> Iterator[Flaw]:
    written = {"document_type": table.document_type, "version": table.version}
    written |= {f"states.{number}": state for number, state in enumerate(table.states)}
    written |= {f"aliases.{name}": name for name in table.aliases}
    for part, names in (
        ("moves", table.moves),
        ("remedies", table.remedies),
        ("branches", table.branches),
        ("informational", table.informational),
    ):
        written |= {f"{part}.{kind}": kind for kind in names}
    if table.parties is not None:
        written |= {f"parties.states.{number}": state for number, state in enumerate(table.parties.states)}
    for field, name in written.items():
        if not 0 < len(name) <= NAME_CHARS or not name.isprintable() or name != name.strip() or name == ANY:
            yield Flaw("bad_name", field, f"1 to {NAME_CHARS} visible characters that are not only `*`")
    yield from bad_paths(table.fields, "fields")


def bad_paths(fields: Fields, at: str) -> Iterator[Flaw]:
    """Find the paths that lead nowhere."""
    for field in fields.__struct_fields__:
        path = getattr(fields, field)
        if path is None and field != "document":
            continue
        if not isinstance(path, str) or {"", "$"} & {*path.split(".")} or _INDEX.search(path):
            yield Flaw(
                "bad_field", f"{at}.{field}", "a dotted path (data.document.id) without empty steps, $ or [0]"
            )


def _replaced(parties: Parties) -> dict[str, Mapping[str, str]]:
    """The way into the state of replaced parties, which no move of theirs leads to."""
    return {} if parties.replaced is None else {"": {ANY: parties.replaced}}


def _states(
    part: TableValues | Parties,
    at: str,
    *,
    turning: Iterable[str],
    free_ways: Mapping[str, Mapping[str, str]],
) -> Iterator[Flaw]:
    known, terminal = set(part.states), set(part.terminal)
    if len(known) != len(part.states):
        yield Flaw("ambiguous_move", f"{at}states", "a state is listed twice")
    if part.initial not in known:
        yield Flaw("unknown_state", f"{at}initial", f"{part.initial!r} is not among the states")
    for number, state in enumerate(part.terminal):
        if state not in known:
            yield Flaw("unknown_state", f"{at}terminal.{number}", f"{state!r} is not among the states")
    if not terminal:
        yield Flaw("no_terminal", f"{at}terminal", "name at least one state in which it ends")
    if part.initial in terminal:
        yield Flaw(
            "initial_is_terminal", f"{at}initial", f"{part.initial!r} is terminal: nothing could ever happen"
        )
    yield from _ways(part, at, known, terminal)
    if not known >= {part.initial, *terminal}:
        return
    flow = Flow(
        states=part.states,
        initial=part.initial,
        terminal=part.terminal,
        moves={**part.moves, **free_ways},
        remedies=part.remedies,
        turning=turning,
    )
    yield from _shape(flow, at)


def _ways(part: TableValues | Parties, at: str, known: set[str], terminal: set[str]) -> Iterator[Flaw]:
    for table, ways in (("moves", part.moves), ("remedies", part.remedies)):
        for kind, each in ways.items():
            for state, target in each.items():
                field = f"{at}{table}.{kind}.{state}"
                if target not in known:
                    yield Flaw("unknown_state", field, f"{target!r} is not among the states")
                if state != ANY and state not in known:
                    yield Flaw("unknown_state", field, f"{state!r} is not among the states")
                elif table == "moves" and state in terminal:
                    yield Flaw(
                        "move_out_of_terminal", field, f"{state!r} is terminal; write it under `remedies`"
                    )
                elif table == "remedies" and state not in terminal:
                    yield Flaw(
                        "remedy_not_terminal", field, f"{state!r} is not terminal; write it under `moves`"
                    )
            if table == "moves" and ANY in each and len(each) > 1:
                yield Flaw(
                    "ambiguous_move",
                    f"{at}moves.{kind}",
                    "`*` means every state; write out the states, or only `*`",
                )


def _shape(flow: Flow, at: str) -> Iterator[Flaw]:
    """Reachability, dead ends and round trips of states and moves that are well-formed."""
    everything = reach(flow.states, _merged(flow))
    for state in flow.states:
        if state != flow.initial and state not in everything[flow.initial]:
            yield Flaw("unreachable_state", f"{at}states", f"no way leads from {flow.initial!r} to {state!r}")
        if state not in flow.terminal and not everything[state] & flow.terminal:
            yield Flaw("dead_end", f"{at}states", f"no way leads from {state!r} to a terminal state")
    for state in flow.states:
        if state in flow.beyond.get(state, ()):
            yield Flaw(
                "round_trip",
                f"{at}moves",
                f"moves lead from {state!r} back to it; make the type that goes back one of `branches`",
            )
            return


def _merged(flow: Flow) -> dict[str, Mapping[str, str]]:
    """Moves and remedies with keys that cannot meet."""
    merged: dict[str, Mapping[str, str]] = {f"move {kind}": ways for kind, ways in flow.moves.items()}
    return merged | {f"remedy {kind}": ways for kind, ways in flow.remedies.items()}


def _party_rules(table: TableValues) -> Iterator[Flaw]:
    parties = table.parties
    assert parties is not None
    if parties.replaced is not None and parties.replaced not in parties.terminal:
        yield Flaw("bad_parties", "parties.replaced", "it must be one of the parties' terminal states")
    if "replace" in table.branches.values() and parties.replaced is None:
        yield Flaw("bad_parties", "parties.replaced", "a type replaces parties: name the state they go to")
    if table.fields.party is None:
        yield Flaw("bad_parties", "fields.party", "without it no event says whose act it is")
    if "replace" in table.branches.values() and table.fields.replaces is None:
        yield Flaw("bad_parties", "fields.replaces", "without it no event says who is replaced")


def _types(table: TableValues) -> Iterator[Flaw]:
    for kind in table.informational:
        if kind in table.moves or kind in table.remedies or kind in table.branches:
            yield Flaw("ambiguous_move", "informational", f"{kind!r} moves something as well")
    if table.parties is None and "replace" in table.branches.values():
        yield Flaw("bad_parties", "branches", "only a table with `parties` can replace one")
    for name, kind in table.aliases.items():
        if name in table.types:
            yield Flaw("ambiguous_move", f"aliases.{name}", f"{name!r} is a type of the table itself")
        if kind not in table.types:
            yield Flaw("unknown_type", f"aliases.{name}", f"the table has no type {kind!r}")


def _order(table: TableValues) -> Iterator[Flaw]:
    order = table.order
    if order.mode == "strict" and table.fields.sequence is None:
        yield Flaw(
            "strict_without_sequence",
            "fields.sequence",
            "say where the number is, or choose `buffer` or `free`",
        )
    if order.mode == "buffer":
        if order.wait_s is None or not 0 < order.wait_s <= WAIT_S_MAX:
            yield Flaw("bad_bound", "order.wait_s", f"more than 0 and at most {WAIT_S_MAX} seconds")
        if order.then not in ("skip", "refuse"):
            yield Flaw("bad_bound", "order.then", "say what happens after the wait: skip or refuse")
    elif order.mode == "strict":
        yield from _strict(order)
    elif order.wait_s is not None or order.then is not None:
        yield Flaw("bad_bound", "order", "`wait_s` and `then` are of `strict` and `buffer`, not of `free`")
    for field, value, least, most in (
        ("order.first", order.first, 0, 2**53),
        ("order.count", order.count, 1, COUNT_MAX),
        ("order.jump", order.jump, 1, 2**53),
        ("memory", table.memory, 1, MEMORY_MAX),
    ):
        if not least <= value <= most:
            yield Flaw("bad_bound", field, f"{least} to {most}")


def _strict(order: Order) -> Iterator[Flaw]:
    if order.then == "skip":
        yield Flaw(
            "bad_bound", "order.then", "`strict` gives no number up by itself: choose `buffer`, or refuse"
        )
    elif order.then == "wait" and order.wait_s is not None:
        yield Flaw("bad_bound", "order.wait_s", "`wait` is for ever: leave `wait_s` out, or refuse")
    elif order.then == "refuse" and not 0 < (order.wait_s or 0) <= WAIT_S_MAX:
        yield Flaw("bad_bound", "order.wait_s", f"more than 0 and at most {WAIT_S_MAX} seconds")


def _rejected(table: TableValues) -> Iterator[Flaw]:
    known, moving = set(table.states), {*table.moves, *table.remedies, *table.branches}
    for kind, ways in table.rejected.items():
        if kind not in moving:
            yield Flaw("unknown_type", f"rejected.{kind}", f"{kind!r} moves nothing that could be taken back")
        for pair in ways.items():
            for state in pair:
                if state not in known:
                    field = f"rejected.{kind}.{pair[0]}"
                    yield Flaw("unknown_state", field, f"{state!r} is not among the states")


def _conflicts(table: TableValues) -> Iterator[Flaw]:
    if len(set(table.precedence)) != len(table.precedence) or not set(table.precedence) <= set(
        table.terminal
    ):
        yield Flaw("bad_precedence", "precedence", "terminal states, each once, strongest first")
    if table.on_conflict == "stop" and table.order.mode == "free":
        yield Flaw("stop_without_order", "on_conflict", "choose `strict` or `buffer`, or record conflicts")
