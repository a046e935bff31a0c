"""`surehook demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from surehook.cli.lazy import command

app = command()


@app.command()
def demo(
    documents: Annotated[
        int, typer.Option(min=10, max=400, help="Documents that go through the workflow.")
    ] = 200,
) -> int:
    """Watch it work, on a temporary SQLite file, within a minute.

    A server delivers a signing workflow to five receivers: healthy, slow, flaky, hanging and refusing.
    In the middle it is killed with kill -9 and started again. The last line on stdout counts what
    became of every delivery; the exit code is 0 only if nothing was lost.
    """
    import signal

    from surehook.demo.run import run

    # Being told to end is the same as Ctrl-C: the children must not stay behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    return run(documents=documents)
