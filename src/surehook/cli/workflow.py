"""`surehook workflow`: transition tables of documents: draw, check, export. Needs no server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from surehook.cli.commands import group
from surehook.cli.output import Json, document, line

if TYPE_CHECKING:
    from surehook.core.workflow.check import WorkflowError
    from surehook.core.workflow.table import Table

app = group("Transition tables of documents: draw, check, export. Needs no server.")

Which = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="A ready table (signing), or a JSON or TOML file; - reads JSON."),
]


@app.command()
def draw(
    table: Which = "signing",
    form: Annotated[
        Literal["text", "mermaid"], typer.Option("--format", help="Text, or Mermaid for a page.")
    ] = "text",
) -> None:
    """Draw a table as a diagram."""
    from surehook.inbox.workflow_diagram import draw_mermaid, draw_text

    drawn = (draw_mermaid if form == "mermaid" else draw_text)(_table(table))
    line(drawn.rstrip("\n"))


@app.command()
def check(table: Which, json: Json = False) -> None:
    """Check a table: every flaw with its place, or its digest. Exit code 5 if something is wrong."""
    from surehook.cli.errors import REJECTED
    from surehook.core.workflow.check import WorkflowError

    try:
        made = _parsed(table)
    except WorkflowError as error:
        if not json:
            raise _refused(table, error) from None
        document({"ok": False, "flaws": _flaws(error)})
        raise typer.Exit(REJECTED) from None
    if json:
        document(
            {"ok": True, "document_type": made.document_type, "version": made.version, "digest": made.digest}
        )
        return
    line(f"{made.document_type} {made.version}: {len(made.states)} states, {len(made.types)} event types")
    line(f"digest {made.digest}")


@app.command()
def export(
    table: Which = "signing",
    form: Annotated[Literal["json", "toml"], typer.Option("--format", help="JSON or TOML.")] = "json",
) -> None:
    """Print a table as data with its digest, for every service to share."""
    from surehook.core.workflow.data import render_table

    line(render_table(_table(table), form).rstrip("\n"))


def _table(written: str) -> Table:
    from surehook.core.workflow.check import WorkflowError

    try:
        return _parsed(written)
    except WorkflowError as error:
        raise _refused(written, error) from None


def _parsed(written: str) -> Table:
    """A ready table by name, or the one in a file. Raises WorkflowError."""
    from surehook.cli.errors import NOT_FOUND, CommandError
    from surehook.cli.inputs import text_of
    from surehook.core.workflow.data import parse_table
    from surehook.core.workflow.signing import SIGNING

    if written == SIGNING.document_type:
        return SIGNING
    if written == "-":
        return parse_table(text_of("-"), "json")
    form: Literal["json", "toml"] = "toml" if Path(written).suffix == ".toml" else "json"
    if Path(written).suffix not in (".toml", ".json"):
        raise CommandError(
            f"there is no table {written!r}",
            hint="signing, or a file that ends in .json or .toml",
            code=NOT_FOUND,
        )
    return parse_table(text_of(f"@{written}"), form)


def _refused(written: str, error: WorkflowError) -> Exception:
    from surehook.cli.errors import REJECTED, CommandError

    where = f"{error.field}: " if error.field else ""
    return CommandError(f"{written}: {where}{error.detail}", hint=error.hint, code=REJECTED)


def _flaws(error: WorkflowError) -> list[dict[str, str]]:
    if not error.flaws:
        return [{"code": error.code, "field": error.field, "text": error.detail}]
    return [{"code": flaw.code, "field": flaw.field, "text": flaw.text} for flaw in error.flaws]
