"""A table as an SVG picture.

Open states stand in columns, each one right of all states from which a move leads to it; the first terminal state, where it
should end, closes their row, and the other ends stand below. A frame around the open states is where `*` moves begin.
Lines of one type into one end share their label. The ways out of ends are listed, not drawn: lines back across the
picture were tried, and nobody could follow them.
"""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from surehook.core.workflow.flow import ANY
from surehook.core.workflow.table import Parties, Table
from surehook.inbox.workflow_diagram import REMEDY, Arrow, arrows, notes

BOX_W, BOX_H, GAP_Y, MARGIN, LINE = 116, 36, 84, 28, 18
CHAR_W = 6.4  # of a label's letter, a little more than most fonts need

_STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1c2430; text-anchor: middle }
  .small { font-size: 11px; fill: #4a5568 }
  .left { text-anchor: start }
  .title { font-weight: 600; text-anchor: start }
  .box { fill: #eef3fb; stroke: #3b5b8c; stroke-width: 1.5 }
  .end { fill: #f4ece4; stroke: #8a5a2b; stroke-width: 1.5 }
  .goal { fill: #e6f4ea; stroke: #2f7d4f; stroke-width: 1.5 }
  .frame { fill: none; stroke: #9aa5b5; stroke-dasharray: 5 4 }
  .way { fill: none; stroke: #4a5568; stroke-width: 1.2 }
"""


class Spot(NamedTuple):
    """Position of a state: the middle of its box."""

    x: float
    y: float


def draw_svg(table: Table) -> str:
    """The picture of a table, its signers' table below, and what cannot be drawn in words."""
    body, width, height = _part(table, MARGIN + 8, table.label)
    if table.parties is not None:
        more, wide, height = _part(table.parties, height + 28, "each signer")
        body += more
        width = max(width, wide)
    words = _words(table)
    for number, text in enumerate(words):
        body.append(
            f'<text class="small left" x="{MARGIN}" y="{height + 26 + number * LINE}">{escape(text)}</text>'
        )
    height += 34 + len(words) * LINE
    width = max(width, max(map(len, words)) * 6.2 + 2 * MARGIN)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img" aria-label="{escape(table.label)}">'
    )
    marker = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#4a5568"/></marker></defs>'
    )
    ground = f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>'
    return "\n".join([head, f"<style>{_STYLE}</style>", marker, ground, *body, "</svg>", ""])


def _words(table: Table) -> list[str]:
    """The ways out of ends, and the notes."""
    lines = []
    for what, part in (("document", table), ("signer", table.parties)):
        if part is not None:
            lines += [
                f"out of {one.source} ({what}, {REMEDY}): {' | '.join(one.types)} → {one.target}"
                for one in arrows(part.remedies)
            ]
    return lines + notes(table)


def _part(part: Table | Parties, top: float, title: str) -> tuple[list[str], float, float]:
    """One flow from `top` down: its elements, its width, where it ends."""
    spots, bottom_open = _places(part, top)
    moves = arrows(part.moves)
    body = [f'<text class="title" x="{MARGIN}" y="{top}">{escape(title)}</text>']
    anywhere = [one for one in moves if one.source == ANY]
    frame_bottom = bottom_open + BOX_H / 2 + 14
    width = max(spot.x for spot in spots.values()) + BOX_W / 2 + MARGIN
    if anywhere:
        body.append(_frame(part, spots, top, frame_bottom))
    labelled: set[tuple[str, tuple[str, ...]]] = set()
    for one in moves:
        if one.source != ANY and one.source != one.target:
            body += _way(one, spots, part, labelled, frame_bottom)
    for one in anywhere:
        body += _from_frame(one, spots, frame_bottom)
    for state, spot in spots.items():
        body += _box(part, state, spot)
    return body, width, max(spot.y for spot in spots.values()) + BOX_H / 2 + 12


def _places(part: Table | Parties, top: float) -> tuple[dict[str, Spot], float]:
    """Position of each state, and how far down open states are."""
    ranks = _ranks(part)
    goal = part.terminal[0]
    columns: dict[int, list[str]] = {}
    for state in part.states:
        if state not in part.terminal:
            columns.setdefault(ranks[state], []).append(state)
    columns.setdefault(max(columns) + 1, []).append(goal)
    step = _step(part)
    longest = max(_leap(one, ranks, goal, max(columns)) for one in arrows(part.moves))
    arcs_h = 22.0 * max(0, longest - 1) + 30
    row = top + arcs_h + BOX_H
    spots = {}
    for column, states in columns.items():
        for number, state in enumerate(states):
            spots[state] = Spot(MARGIN + 14 + BOX_W / 2 + column * step, row + number * GAP_Y)
    bottom = max(spot.y for spot in spots.values())
    others = [state for state in part.terminal if state != goal]
    span = max(spot.x for spot in spots.values()) - MARGIN - 14 - BOX_W / 2
    for number, state in enumerate(others):
        x = MARGIN + 14 + BOX_W / 2 + span * (number + 1) / (len(others) + 1)
        spots[state] = Spot(x, bottom + GAP_Y + 46)
    return spots, bottom


def _step(part: Table | Parties) -> float:
    """From one column to the next: a box and room for the longest label."""
    longest = max((len(kind) for one in arrows(part.moves) for kind in one.types), default=0)
    return BOX_W + max(60.0, longest * CHAR_W + 24)


def _leap(one: Arrow, ranks: dict[str, int], goal: str, last: int) -> int:
    """Number of columns that an arrow between two states of the row passes."""
    if one.source == ANY or one.source not in ranks:
        return 0
    target = last if one.target == goal else ranks.get(one.target)
    return 0 if target is None else abs(target - ranks[one.source])


def _ranks(part: Table | Parties) -> dict[str, int]:
    """The column of every open state: one more than the last of those that lead to it. Turns back are not counted."""
    is_open = [state for state in part.states if state not in part.terminal]
    ranks = dict.fromkeys(is_open, 0)
    ways = [
        one
        for one in arrows(part.moves)
        if one.source in ranks and one.target in ranks and one.source != one.target
    ]
    for _ in is_open:
        for one in ways:
            if ranks[one.source] + 1 < len(is_open):
                ranks[one.target] = max(ranks[one.target], ranks[one.source] + 1)
    return ranks


def _box(part: Table | Parties, state: str, spot: Spot) -> list[str]:
    kind = "box" if state not in part.terminal else "goal" if state == part.terminal[0] else "end"
    x, y = spot.x - BOX_W / 2, spot.y - BOX_H / 2
    lines = [f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{BOX_W}" height="{BOX_H}" rx="9"/>']
    if state in part.terminal:
        lines.append(
            f'<rect class="{kind}" fill-opacity="0" x="{x + 3:g}" y="{y + 3:g}" width="{BOX_W - 6}" '
            f'height="{BOX_H - 6}" rx="6"/>'
        )
    if state == part.initial:
        lines.append(f'<circle cx="{x - 12:g}" cy="{spot.y:g}" r="5" fill="#1c2430"/>')
    lines.append(f'<text x="{spot.x:g}" y="{spot.y + 4.5:g}">{escape(state)}</text>')
    return lines


def _frame(part: Table | Parties, spots: dict[str, Spot], top: float, bottom: float) -> str:
    is_open = [spots[state] for state in part.states if state not in part.terminal]
    left = min(spot.x for spot in is_open) - BOX_W / 2 - 24
    right = max(spot.x for spot in is_open) + BOX_W / 2 + 14
    return (
        f'<rect class="frame" x="{left:g}" y="{top + 10:g}" width="{right - left:g}" '
        f'height="{bottom - top - 10:g}" rx="12"/>'
    )


def _way(
    one: Arrow,
    spots: dict[str, Spot],
    part: Table | Parties,
    labelled: set[tuple[str, tuple[str, ...]]],
    frame: float,
) -> list[str]:
    """The line of one arrow, with its label unless a line of the same type into the same end has it."""
    source, target = spots[one.source], spots[one.target]
    if one.target in part.terminal and target.y > frame:
        return _down(one, source, target, labelled)
    if abs(target.y - source.y) < 1 and abs(target.x - source.x) > _step(part) + 1:
        return _arc(one, source, target, _step(part))
    sign = 1 if target.x >= source.x else -1
    x1, x2 = source.x + sign * BOX_W / 2, target.x - sign * BOX_W / 2
    middle = Spot((x1 + x2) / 2, (source.y + target.y) / 2)
    return [
        f'<path class="way" marker-end="url(#tip)" d="M{x1:g} {source.y:g}L{x2:g} {target.y:g}"/>',
        *_text(one.types, middle.x, middle.y - 7),
    ]


def _arc(one: Arrow, source: Spot, target: Spot, step: float) -> list[str]:
    columns = abs(target.x - source.x) / step
    rise = 22 * (columns - 1) + 26
    y = source.y - BOX_H / 2
    path = f"M{source.x + 22:g} {y:g}C{source.x + 60:g} {y - rise:g} {target.x - 60:g} {y - rise:g} {target.x - 22:g} {y:g}"
    return [
        f'<path class="way" marker-end="url(#tip)" d="{path}"/>',
        *_text(one.types, (source.x + target.x) / 2, y - rise * 0.75 - 5),
    ]


def _down(one: Arrow, source: Spot, target: Spot, labelled: set[tuple[str, tuple[str, ...]]]) -> list[str]:
    y1, y2 = source.y + BOX_H / 2, target.y - BOX_H / 2
    lines = [f'<path class="way" marker-end="url(#tip)" d="M{source.x:g} {y1:g}L{target.x:g} {y2:g}"/>']
    if (one.target, one.types) not in labelled:
        labelled.add((one.target, one.types))
        lines += _text(one.types, target.x, target.y + BOX_H / 2 + 15)
    return lines


def _from_frame(one: Arrow, spots: dict[str, Spot], frame: float) -> list[str]:
    target = spots[one.target]
    y = target.y - BOX_H / 2
    return [
        f'<path class="way" marker-end="url(#tip)" d="M{target.x:g} {frame:g}L{target.x:g} {y:g}"/>',
        *_text(one.types, target.x, target.y + BOX_H / 2 + 15),
    ]


def _text(types: tuple[str, ...], x: float, y: float) -> list[str]:
    """The types of an arrow, one above the other."""
    return [
        f'<text class="small" x="{x:g}" y="{y - (len(types) - 1 - number) * 13:g}">{escape(kind)}</text>'
        for number, kind in enumerate(types)
    ]
