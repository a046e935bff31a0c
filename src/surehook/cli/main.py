"""`surehook`: the command tree, and the one place where an error becomes a message and an exit code."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from surehook import __version__
from surehook.cli import pending_call
from surehook.cli.commands import COMPLETING, LazyGroup
from surehook.cli.commands import CommandEntry as Entry


class Commands(LazyGroup):
    entries = (
        Entry("Start", "demo", "surehook.cli.demo", "Watch it work: a sender, an inbox, kill -9 of both midway."),
        Entry("Start", "serve", "surehook.cli.serve", "Run the server."),
        Entry("Start", "doctor", "surehook.cli.doctor", "Look for what is wrong with this set-up."),
        Entry("Start", "config", "surehook.cli.config", "Show the settings and where each comes from."),
        Entry("Start", "migrate", "surehook.cli.migrate", "Show or apply the ledger's migrations."),
        Entry("Start", "backup", "surehook.cli.backup", "Copy the ledger while the server runs."),
        Entry("Start", "ingest", "surehook.cli.ingest", "Publish what comes from a RabbitMQ queue."),
        Entry("Start", "outbox", "surehook.cli.outbox", "Publish what an application wrote in its own transactions."),
        Entry("Start", "completion", "surehook.cli.completion", "Print a script that completes commands in bash, zsh or fish."),
        Entry("Start", "version", "surehook.cli.version", "Print versions."),
        Entry("Try", "send", "surehook.cli.send", "Publish an event."),
        Entry("Try", "listen", "surehook.cli.listen", "Receive, verify and print webhooks on this machine."),
        Entry("Look", "events", "surehook.cli.events", "Events: list, show."),
        Entry("Look", "deliveries", "surehook.cli.deliveries", "Deliveries: list, show the whole story, resend, cancel."),
        Entry("Look", "notices", "surehook.cli.notices", "What an operator should know."),
        Entry("Look", "breakers", "surehook.cli.breakers", "Breakers: which URLs fail, and which are not called."),
        Entry("Look", "lanes", "surehook.cli.lanes", "Slots, waiting and parked deliveries of each lane."),
        Entry("Look", "policy", "surehook.cli.policy", "Policies and their timelines in clock time."),
        Entry("Look", "workflow", "surehook.cli.workflow", "Transition tables of documents: draw, check, export."),
        Entry("Look", "inbox", "surehook.cli.inbox", "A receiving application's inbox: tables, workers, what is in it."),
        Entry("Act", "resend", "surehook.cli.resend", "Deliver again, or at once."),
        Entry("Act", "dead-letters", "surehook.cli.dead_letters", "What gave up: list, dismiss with a note."),
        Entry("Act", "replays", "surehook.cli.replays", "Deliver again by filter."),
        Entry("Manage", "endpoints", "surehook.cli.endpoints", "Endpoints: create, pause, rotate a secret, test …"),
        Entry("Manage", "tenants", "surehook.cli.tenants", "Tenants."),
        Entry("Manage", "event-types", "surehook.cli.event_types", "Event types, their schemas and policies."),
    )  # fmt: skip


app = typer.Typer(
    cls=Commands,
    help="Webhooks that surely arrive, and take effect once.",
    epilog="Exit codes, --json, settings: docs/cli.md and docs/configuration.md.",
    no_args_is_help=True,
    add_completion=False,  # its two options alone would make every sub-command's help load pydantic
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"surehook {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show the Python traceback of an unexpected error.")
    ] = False,
) -> None:
    """Webhooks that surely arrive, and take effect once."""


def descend(root: object, words: list[str]) -> tuple[Any, str, list[str]]:
    """The innermost command that the leading words name, its full name, and the words left for it.

    Typer would find it too, but it imports pydantic (60 ms) to learn that a group's own --help was not
    given. A group with options of its own is left to Typer; the root's are of use only when they come first.
    """
    command, name, rest = root, "surehook", list(words)
    while rest and isinstance(command, TyperGroup) and (command is root or not command.params):
        inner = command.get_command(None, rest[0])  # type: ignore[arg-type]  # a context is not needed
        if inner is None:
            break
        command, name, rest = inner, f"{name} {rest[0]}", rest[1:]
    return command, name, rest


def open_all() -> None:
    """Open closed standard streams (`>&-`) on the null device. Otherwise the next file that is opened, such as a ledger,
    would get their number and be written to."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    for name, place in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(place, "w", closefd=False))


def run(args: list[str] | None = None) -> int:
    """Run one command line and return its exit code. Nothing but the code and the output leaves here."""
    open_all()
    given = sys.argv[1:] if args is None else args
    pending_call.clear()
    try:
        if COMPLETING in os.environ:
            from surehook.cli.completion import prepare

            prepare()
        command, name, rest = descend(typer.main.get_command(app), given)
        code = command.main(
            args=rest, prog_name=name, standalone_mode=False, help_option_names=["-h", "--help"]
        )
        if code == 130:  # typer's answer to Ctrl-C
            from surehook.cli.errors import interrupted

            interrupted()
        sys.stdout.flush()
    except Exception as error:
        from surehook.cli.errors import report

        return report(error, traceback="--traceback" in given)
    return code if isinstance(code, int) else 0
