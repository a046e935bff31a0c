"""`surehook demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.commands import command

app = command()


@app.command()
def demo(
    documents: Annotated[
        int, typer.Option(min=10, max=400, help="Documents that go through the workflow.")
    ] = 200,
) -> int:
    """Watch it work, on a temporary SQLite file, within a minute.

    A server delivers a signing workflow to an application with an inbox, by a road that loses, repeats and
    reorders, and to five other receivers: healthy, slow, flaky, hanging and refusing. In the middle the server
    and then the application are killed with kill -9 and started again. The last line on stdout counts what
    became of every delivery and of every effect; the exit code is 0 only if nothing was lost and nothing
    took effect twice.
    """
    import signal

    from surehook.demo.run import run
    from surehook.host.process import need_descriptors

    # Being told to end, or losing the terminal, is the same as Ctrl-C: the children must not stay behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    need_descriptors()
    return run(documents=documents)
