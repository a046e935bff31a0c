"""Tracebacks of handlers' errors, for the log and for the rows: the application's frames, and few of the libraries beneath.

A statement that fails below a driver with its own loop has more than a hundred lines, and its application's in the middle, where
a limit of the log would cut. So what calls the handler is left out, and of the frames of libraries the first and the last stay.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Collection, Iterator
from itertools import groupby
from pathlib import PurePath

import surehook
from surehook.inbox.log_limits import TEXT_MOST

# Characters of one message or frame: the second number if the whole is too long for the log with the first.
CHUNKS = (2_000, 500)
RUN = 3  # frames of libraries, one beneath the other, that are shown as they are

_OURS = os.path.dirname(surehook.__file__) + os.sep
_PYTHON = os.path.dirname(os.__file__) + os.sep
_INSTALLED = ("site-packages", "dist-packages")
_TYPED = ("<stdin>", "<console>", "<ipython-input")
_COMPILED = (".pyx", ".pxd")  # asyncpg, asyncmy: named by where they were built


class _LeftOut(traceback.FrameSummary):
    """Stands for frames of libraries; `lineno` is their number."""

    def __init__(self, count: int) -> None:
        super().__init__("", count, "", lookup_line=False, line="")


class _Frames(traceback.StackSummary):
    """Frames, and where some were left out."""

    def format_frame_summary(self, frame_summary: traceback.FrameSummary, **options: bool) -> str:
        if isinstance(frame_summary, _LeftOut):
            return f"  … {frame_summary.lineno} frames of libraries …\n"
        return super().format_frame_summary(frame_summary, **options)


def packages(functions: Collection[Callable[..., object]]) -> frozenset[str]:
    """The packages in which these functions are: an application may be installed, as its libraries are."""
    return frozenset((getattr(one, "__module__", None) or "__main__").partition(".")[0] for one in functions)


def written(error: BaseException, own: Collection[str]) -> str:
    """Write an error with its traceback. `own`: the packages of the application. Where none of its frames is in there, nobody
    knows which say where it was, and all stay."""
    made = traceback.TracebackException.from_exception(error)
    all_of_them = list(_all(made))
    if not any(_has_theirs(one, own) for one in all_of_them):
        return "".join(made.format())
    for one in all_of_them:
        before = one.__context__
        # As when the handler is called again, alone, since the transaction of a batch has failed.
        if before is not None and before.stack and _is_ours(before.stack[0]) and not _has_theirs(before, own):
            one.__context__ = None
    for one in all_of_them:
        one.stack = _shown(one.stack or (), own)
    text = ""
    for most in CHUNKS:
        text = "".join(_cut(chunk, most) for chunk in made.format())
        if len(text) <= TEXT_MOST:
            break
    return text


def _all(made: traceback.TracebackException) -> Iterator[traceback.TracebackException]:
    """It, those that it came of, and those of a group."""
    waiting = [made]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += [other for other in (one.__cause__, one.__context__) if other is not None]
        waiting += one.exceptions or ()


def _shown(frames: Collection[traceback.FrameSummary], own: Collection[str]) -> _Frames:
    """The frames that are to be shown, of one error."""
    shown = _Frames()
    runs = [(theirs, list(run)) for theirs, run in groupby(frames, lambda one: _is_theirs(one, own))]
    if len(runs) > 1 and not runs[0][0]:  # what calls the handler
        del runs[0]
    for theirs, run in runs:
        if theirs or len(run) <= RUN:
            shown += run
        else:
            shown += [run[0], _LeftOut(len(run) - 2), run[-1]]
    return shown


def _has_theirs(one: traceback.TracebackException, own: Collection[str]) -> bool:
    return any(_is_theirs(frame, own) for frame in one.stack or ())


def _is_ours(frame: traceback.FrameSummary) -> bool:
    return frame.filename.startswith(_OURS)


def _is_theirs(frame: traceback.FrameSummary, own: Collection[str]) -> bool:
    name = frame.filename
    if name.startswith("<"):  # made of text by a library (SQLAlchemy, msgspec, Python), or typed in
        return name.startswith(_TYPED)
    if _is_ours(frame) or name.endswith(_COMPILED):
        return False
    parts = PurePath(name).parts
    for at, part in enumerate(parts[:-1]):
        if part in _INSTALLED:
            return PurePath(parts[at + 1]).stem in own
    return not name.startswith(_PYTHON)


def _cut(text: str, most: int) -> str:
    """Shorten a message or a frame in its middle."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}… {len(text) - 2 * half} characters left out …{text[-half:]}"
