"""Command groups. The root knows its commands by name and one sentence, and imports one when it is called.

`surehook --help` must be there at once, so the list of commands is a literal table and no command's
module is loaded to print it. A module offers `app`, a `typer.Typer`: with one command in it (and no
callback) it is mounted as that command, otherwise as a group of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

COMPLETING = "_SUREHOOK_COMPLETE"  # set by a shell that asks what could follow


class CommandEntry(NamedTuple):
    """One line of the help: heading, command, module and summary."""

    heading: str
    name: str
    module: str
    summary: str


class LazyGroup(TyperGroup):
    """A group whose subclass lists `entries`; a command's module is imported when it is called."""

    entries: tuple[CommandEntry, ...] = ()

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands = {entry.name: _stand_in(entry) for entry in self.entries}

    def list_commands(self, ctx: object) -> list[str]:
        return [entry.name for entry in self.entries]

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        for entry in self.entries:
            if entry.name == cmd_name:
                command = get_command(import_module(entry.module).app)
                command.name = cmd_name
                return command
        return None

    def format_commands(self, ctx: object, formatter: Any) -> None:
        for heading in dict.fromkeys(entry.heading for entry in self.entries):
            with formatter.section(heading):
                formatter.write_dl([(e.name, e.summary) for e in self.entries if e.heading == heading])


def _stand_in(entry: CommandEntry) -> TyperCommand:
    return TyperCommand(name=entry.name, help=entry.summary, callback=None)


class CommandGroup(TyperGroup):
    """A group that lists its commands with their whole first sentence, which typer would cut."""

    def format_commands(self, ctx: object, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, first_sentence(self.commands[name].help)) for name in self.commands])


def first_sentence(text: str | None) -> str:
    first, stop, _ = " ".join((text or "").partition("\n\n")[0].split()).partition(". ")
    return first + stop.rstrip()


def group(help_text: str) -> typer.Typer:
    """The group of one noun: plain help (rich takes long to import), no rich tracebacks."""
    return typer.Typer(
        cls=CommandGroup,
        help=help_text,
        no_args_is_help=True,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def command() -> typer.Typer:
    """The app of a module with exactly one command."""
    return typer.Typer(
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
