"""A table as a diagram: text for a terminal, Mermaid for pages.

Both show the same: the moves, those of `*` once from "any open state", the ends, and dashed the ways out of ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from surehook.core.workflow.flow import ANY
from surehook.core.workflow.table import Table
from surehook.core.workflow.table_values import Parties, Ways

REMEDY = "newer version or token"


class Arrow(NamedTuple):
    """One line of a diagram: the types that lead from one state (or `*`) to another."""

    source: str
    target: str
    types: tuple[str, ...]


def arrows(ways: Ways) -> list[Arrow]:
    """The arrows of moves or remedies; types between the same two states share one."""
    joined: dict[tuple[str, str], list[str]] = {}
    for kind, each in ways.items():
        for source, target in each.items():
            joined.setdefault((source, target), []).append(kind)
    return [Arrow(source, target, tuple(kinds)) for (source, target), kinds in joined.items()]


def draw_text(table: Table) -> str:
    """The diagram in plain text: ● where it begins, ○ open, ■ where it ends."""
    lines = [table.label, "", *_text_part(table)]
    if table.parties is not None:
        lines += ["", "each signer", "", *_text_part(table.parties)]
    lines += ["", *notes(table)]
    return "\n".join(lines) + "\n"


def draw_mermaid(table: Table) -> str:
    """The document's diagram as a Mermaid state diagram."""
    return "\n".join(["stateDiagram-v2", *_mermaid_part(table)]) + "\n"


def draw_mermaid_parties(table: Table) -> str | None:
    """The signer's diagram as a Mermaid state diagram; None where the table has no parties."""
    if table.parties is None:
        return None
    return "\n".join(["stateDiagram-v2", *_mermaid_part(table.parties)]) + "\n"


def notes(table: Table) -> list[str]:
    """Describe what a diagram cannot show, one line each."""
    order = table.order
    waits = "" if order.wait_s is None else f", waits {order.wait_s:g} s, then {order.then}"
    lines = [f"order: {order.mode}{waits}, at most {order.count} waiting"]
    if order.mode == "free":
        lines = ["order: free"]
    lines += [f"branch: {kind} ({rule})" for kind, rule in table.branches.items()]
    if table.informational:
        lines.append("informational: " + ", ".join(table.informational))
    if table.precedence:
        lines.append("precedence: " + " before ".join(table.precedence))
    lines.append(f"stale: {table.on_stale}, conflict: {table.on_conflict}, unknown types: {table.on_unknown}")
    return lines


def _text_part(part: Table | Parties) -> Iterator[str]:
    moves, remedies = arrows(part.moves), arrows(part.remedies)
    for state in (*part.states, ANY):
        out = [(one, "─") for one in moves if one.source == state]
        out += [(one, "╌") for one in remedies if one.source == state]
        if state == ANY and not out:
            continue
        yield f"{_mark(part, state)} {'any open state' if state == ANY else state}"
        for number, (one, dash) in enumerate(out):
            corner = "└" if number == len(out) - 1 else "├"
            end = " ■" if one.target in part.terminal else ""
            why = f"  ({REMEDY})" if dash == "╌" else ""
            yield f"{corner}{dash} {' | '.join(one.types)} {dash * 2}▶ {one.target}{end}{why}"


def _mark(part: Table | Parties, state: str) -> str:
    return "●" if state == part.initial else "■" if state in part.terminal else "○"


def _mermaid_part(part: Table | Parties) -> Iterator[str]:
    names = _names(part)
    for state, name in names.items():
        if name != state:
            yield f'    state "{state.replace(chr(34), chr(39))}" as {name}'
    moves = arrows(part.moves)
    anywhere = [one for one in moves if one.source == ANY]
    inside = [one for one in moves if one.source != ANY and one.target not in part.terminal]
    outside = [one for one in moves if one.source != ANY and one.target in part.terminal]
    dent = "        " if anywhere else "    "
    if anywhere:
        yield '    state "any open state" as open_state {'
    yield f"{dent}[*] --> {names[part.initial]}"
    for one in inside:
        yield f"{dent}{_edge(one, names)}"
    if anywhere:
        yield "    }"
    for one in outside:
        yield f"    {_edge(one, names)}"
    for one in anywhere:
        yield f"    open_state --> {names[one.target]}: {_label(one)}"
    for one in arrows(part.remedies):
        yield f"    {_edge(one, names)} ({REMEDY})"
    for state in part.terminal:
        yield f"    {names[state]} --> [*]"


def _edge(one: Arrow, names: dict[str, str]) -> str:
    return f"{names[one.source]} --> {names[one.target]}: {_label(one)}"


def _label(one: Arrow) -> str:
    # A colon would end Mermaid's label.
    return " | ".join(one.types).replace(":", "∶").replace("\n", " ")


def _names(part: Table | Parties) -> dict[str, str]:
    """A name for every state that Mermaid takes: itself if it is a word, else its number."""
    words = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
    reserved = {"state", "note", "end", "open_state", "class", "direction", "default"}
    return {
        state: state if words.fullmatch(state) and state.lower() not in reserved else f"state_{number}"
        for number, state in enumerate(part.states)
    }
