"""`surehook doctor`: looks, changes nothing, and says what to do. Exit code 7 when something is wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from surehook.cli.lazy import command
from surehook.cli.output import Json, document, line, paint
from surehook.cli.server import Key, Url

if TYPE_CHECKING:
    from surehook.cli.finding import Finding

app = command()

COLOURS = {"ok": "green", "warning": "yellow", "wrong": "red"}


@app.command()
def doctor(
    offline: Annotated[bool, typer.Option("--no-server", help="Do not ask the server.")] = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> int:
    """Look for what is wrong with this set-up. Exit code 7 if something is."""
    from surehook.cli.examining import examine
    from surehook.cli.faults import NOT_MET, OK

    findings = examine(url, key, online=not offline)
    if json:
        document(findings)
    else:
        for finding in findings:
            _show(finding)
    return NOT_MET if any(finding.state == "wrong" for finding in findings) else OK


def _show(finding: Finding) -> None:
    word = paint(finding.state.ljust(7), COLOURS[finding.state], sys.stdout)
    line(f"{word}  {finding.what.ljust(9)}  {finding.detail}")
    if finding.hint:
        line(f"         {'':9}  → {finding.hint}")
