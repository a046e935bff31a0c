"""A parent and its children, as real processes: shared work, restarts, signals, and what is left in the end."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

PROGRAM = """
import os, select, signal, sys, time
from surehook.host.children import Children

def out(*words):  # whole lines: several processes share the pipe, and may be told to write without a buffer
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

def say(line):
    out("say", line)

def told(facts):
    out("told", facts["process"], facts["pid"], facts.get("word"))

def serve(child, *, ends=0, ignores=False):
    signal.signal(signal.SIGTERM, (lambda *a: None) if ignores else (lambda *a: os._exit(ends)))
    child.tell(word="up")
    while not select.select([child.parent], [], [], 1.0)[0]:
        pass
    out("orphaned", child.number)
    return 0

"""


@contextmanager
def parent(body: str) -> Iterator[subprocess.Popen[str]]:
    code = PROGRAM + textwrap.dedent(body)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, bufsize=1)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def heard(process: subprocess.Popen[str], begin: str) -> str:
    """The next line that begins so. Read byte by byte: what a reader keeps for later, nobody can wait for."""
    assert process.stdout is not None
    end = process.stdout.fileno()
    line = b""
    while True:
        ready, _, _ = select.select([end], [], [], 20)
        assert ready, f"nothing that begins with {begin!r}"
        byte = os.read(end, 1)
        assert byte, f"it ended before {begin!r}"
        line += byte
        if byte == b"\n":
            if line.startswith(begin.encode()):
                return line.decode().strip()
            line = b""


def test_all_children_start_and_all_end_as_asked() -> None:
    with parent("sys.exit(Children(3, serve, grace_s=5, told=told, say=say).run())") as process:
        assert {heard(process, "told").split()[1] for _ in range(3)} == {"0", "1", "2"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_a_dead_child_is_started_again_and_said() -> None:
    with parent("sys.exit(Children(2, serve, grace_s=5, told=told, say=say).run())") as process:
        first = [int(heard(process, "told").split()[2]) for _ in range(2)]
        os.kill(first[1], signal.SIGKILL)
        assert "was killed by signal 9; it is started again in 0 s" in heard(process, "say")
        again = int(heard(process, "told 1").split()[2])
        os.kill(again, signal.SIGKILL)
        assert "it is started again in 0.1 s" in heard(process, "say")
        heard(process, "told 1")
        process.send_signal(signal.SIGINT)
        assert "may finish within 5 s" in heard(process, "say")
        assert process.wait(10) == 0


def test_the_others_wait_for_the_first_and_do_not_start_where_it_stops_all() -> None:
    body = """
    def work(child):
        child.tell(word="no")
        return 2
    def told(facts):
        print("told", facts["word"], flush=True)
        children.stop()
    children = Children(3, work, grace_s=5, told=told, say=say)
    sys.exit(children.run())
    """
    with parent(body) as process:
        heard(process, "told no")
        process.wait(10)
        assert process.stdout is not None
        assert process.stdout.read() == ""


def test_a_child_that_fails_at_its_end_is_told_by_the_status() -> None:
    body = """
    def work(child):
        return serve(child, ends=3)
    sys.exit(Children(2, work, grace_s=5, told=told, say=say).run())
    """
    with parent(body) as process:
        heard(process, "told 0")
        heard(process, "told 1")
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 1


def test_a_second_signal_ends_all_at_once() -> None:
    body = """
    def work(child):
        return serve(child, ignores=True)
    sys.exit(Children(2, work, grace_s=60, told=told, say=say).run())
    """
    with parent(body) as process:
        pids = [int(heard(process, "told").split()[2]) for _ in range(2)]
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) in (128 + signal.SIGINT, 128 + signal.SIGTERM)
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_children_learn_of_their_parents_death() -> None:
    with parent("sys.exit(Children(2, serve, grace_s=5, told=told, say=say).run())") as process:
        heard(process, "told 0")
        heard(process, "told 1")
        process.kill()
        assert {heard(process, "orphaned") for _ in range(2)} == {"orphaned 0", "orphaned 1"}
