"""Progress fits the terminal it is drawn on, and is whole lines where there is none."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from surehook.demo.plan import PARTS
from surehook.demo.watching import ProgressDisplay, _table

COUNTS = {
    part.name: {"scheduled": 1, "sending": 22, "retrying": 3, "parked": 444, "delivered": 5555, "dead": 66}
    for part in PARTS
}


@pytest.mark.parametrize(("width", "column"), [(140, "scheduled"), (80, "scheduled"), (72, "scheduled"), (71, "waiting"), (50, "waiting")])  # fmt: skip
def test_a_table_shows_every_count_uncut_at_every_width(width: int, column: str) -> None:
    out = io.StringIO()
    Console(width=width, file=out).print(_table(COUNTS, "title", width))
    drawn = out.getvalue()
    assert "…" not in drawn
    assert column in drawn
    assert drawn.count("5555") == len(PARTS)
    assert max(map(len, drawn.splitlines())) <= width


def test_without_a_terminal_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressDisplay() as watch:
        watch.tell("begins", at_s=0.0)
        for tenth in range(50):
            watch.show({"inbox": {"delivered": 3, "parked": 1}}, status="publishing", at_s=tenth / 10)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == [
        "  0.0 s  begins",
        "  0.0 s  publishing; delivered: inbox 3/4",
        "  3.0 s  publishing; delivered: inbox 3/4",
    ]
