"""A process that has loaded libraries and becomes, by a fork, what is asked of it: loading them costs more than most short processes.

It reads requests from its standard input, a line of JSON each, and answers with the exit code of what it became. Nothing of ours is
loaded in it, so what it becomes may import a changed copy.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any


def main(libraries: Sequence[str]) -> None:
    """Answer requests until nobody is there to ask."""
    for name in libraries:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who asks
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            become(json.loads(line))
        _, status = os.waitpid(pid, 0)
        os.write(1, f"{os.waitstatus_to_exitcode(status)}\n".encode())


def become(asked: Mapping[str, Any]) -> None:
    """Run `code` as `python -c` would, with its words in files, and end this process, after so many `seconds` by a signal."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(asked["seconds"])
    for number, name in enumerate((os.devnull, asked["out"], asked["err"])):
        flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(name, flags), number)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.path[0:1] = [asked["folder"], *asked["environment"].get("PYTHONPATH", "").split(os.pathsep)]
    sys.argv = ["-c", *asked["arguments"]]
    del sys.modules["__main__"].__file__  # processes that it starts begin with what they are told
    status = 1
    try:
        exec(compile(asked["code"], "<string>", "exec"), {"__name__": "__main__"})
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
