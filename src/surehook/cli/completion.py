"""`surehook completion`: the script by which a shell completes commands and options."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from surehook.cli.commands import COMPLETING, command
from surehook.cli.output import line

app = command()


@app.command()
def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], typer.Argument(metavar="SHELL", help="bash, zsh or fish.")
    ],
) -> None:
    """Print a script that completes commands and options in a shell.

    Add `source <(surehook completion bash)` to ~/.bashrc, the same with zsh to ~/.zshrc after `compinit`, or write it to
    ~/.config/fish/completions/surehook.fish.
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    line(get_completion_script(prog_name="surehook", complete_var=COMPLETING, shell=shell))


def prepare() -> None:
    """Teach the command library the shells; needed only where a shell asks."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
