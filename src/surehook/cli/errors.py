"""Exit codes, and errors as people read them: what, where, hint. No stack trace reaches a user.

0 ok · 1 failed · 2 usage · 3 auth · 4 not found · 5 rejected or invalid · 6 cannot reach the server
7 condition not met · 8 partly done · 130 interrupted
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Final

import typer

from surehook.cli import pending_call
from surehook.core.errors import LedgerError, LedgerFull, Problem, SettingsError, SurehookError

OK: Final = 0
FAILED: Final = 1
USAGE: Final = 2
AUTH: Final = 3
NOT_FOUND: Final = 4
REJECTED: Final = 5
UNREACHABLE: Final = 6
NOT_MET: Final = 7
PARTLY: Final = 8
INTERRUPTED: Final = 130

KEY_HINT: Final = "give the server's key with --api-key or SUREHOOK_API_KEY"
URL_HINT: Final = (
    "an endpoint's new address is `endpoints update ENDPOINT --target URL`; the server's is --server URL"
)

_click_error: type[BaseException] = typer.BadParameter.__mro__[2]


class CommandError(SurehookError):
    """A command cannot do what was asked. `code` is the exit code, `hint` the next thing to try."""

    def __init__(self, what: str, *, hint: str | None = None, code: int = FAILED) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.code = code


def report(error: BaseException, *, traceback: bool = False) -> int:
    """Say on stderr what went wrong and return the exit code."""
    if isinstance(error, _click_error):
        error.show()  # type: ignore[attr-defined]  # usage and sentence, on stderr
        stray = "unexpected extra argument" in str(error) and "://" in str(error)
        if stray or getattr(error, "option_name", None) == "--url":
            _hint(URL_HINT)
        return int(error.exit_code)  # type: ignore[attr-defined]
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        return interrupted()
    if isinstance(error, BrokenPipeError):
        # The reader (`| head`) has read enough. Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    what, hint, code = explain(error)
    if traceback:
        import traceback as traces

        traces.print_exception(error)
    _write(what, hint)
    if is_doubtful(error) and (advice := pending_call.advice()) is not None:
        _hint(advice)
    return code


def is_doubtful(error: BaseException) -> bool:
    """True if the server may have done what was asked although no answer says so."""
    from surehook.client import calls
    from surehook.client.errors import Refused, Unreachable

    return isinstance(error, Refused | Unreachable) and calls.is_doubtful(error)


def interrupted() -> int:
    """Say on stderr what an interrupted command may have done, if anything."""
    advice = pending_call.advice()
    if advice is not None:
        sys.stderr.write(f"interrupted; {advice}\n")
    return INTERRUPTED


def explain(error: BaseException) -> tuple[str, str | None, int]:
    """The sentence, the hint and the exit code of an error."""
    from surehook.client.errors import Refused, Unreachable

    if isinstance(error, CommandError):
        return error.what, error.hint, error.code
    if isinstance(error, SettingsError):
        return f"{error.key}: {error.detail}", error.hint, USAGE
    if isinstance(error, Unreachable):
        if error.cause.startswith("no answer within"):
            return (
                str(error),
                "it is there, but stands still or is overloaded: see its log, then `surehook doctor`",
                UNREACHABLE,
            )
        start = "start it with `surehook serve`, or give its address with --server or SUREHOOK_URL"
        return str(error), error.hint or start, UNREACHABLE
    if isinstance(error, Refused):
        return _refused(error)
    if isinstance(error, Problem):
        return _problem(error.code, error.detail, error.field), error.hint, _code_of(error.status)
    if isinstance(error, LedgerFull):
        return (
            f"the ledger: {error}",
            "free some space on that disk, then start again: nothing answered 202 is lost",
            FAILED,
        )
    if isinstance(error, LedgerError):
        return f"the ledger: {error}", "`surehook doctor` looks for the cause", FAILED
    if isinstance(error, SurehookError):
        return str(error), None, FAILED
    if isinstance(error, OSError):
        return _system(error)
    if isinstance(error, UnicodeEncodeError):
        return "an argument is not valid UTF-8 text", None, USAGE
    where = _place(error)
    return (
        f"unexpected {type(error).__name__}: {error}{where}",
        "this is a defect; `surehook --traceback …` shows what a report needs",
        FAILED,
    )


def _refused(error: object) -> tuple[str, str | None, int]:
    from surehook.client.errors import Refused

    assert isinstance(error, Refused)
    hint = KEY_HINT if error.status in (401, 403) else _in_commands(error.hint)
    if error.code == "outcome_unknown":
        hint = None  # `report` names the very command to look with
    return _problem(error.code, error.detail, error.field), hint, _code_of(error.status)


# Commands in place of the calls that the API's hints name.
_COMMANDS = {
    "POST /v1/tenants": "`surehook tenants create NAME --id ID`",
    "POST /v1/event-types": "`surehook event-types create NAME`",
    "POST /v1/events": "`surehook send`",
    "GET /v1/policies": "`surehook policy list`",
}


def _in_commands(hint: str | None) -> str | None:
    if hint is not None:
        for call in sorted(_COMMANDS, key=len, reverse=True):
            hint = hint.replace(call, _COMMANDS[call])
    return hint


def _problem(code: str, detail: str, field: str | None) -> str:
    return f"{detail} ({code}" + (f", field {field})" if field else ")")


def _code_of(status: int) -> int:
    if status in (401, 403):
        return AUTH
    if status == 404:
        return NOT_FOUND
    return REJECTED if 400 <= status < 500 else FAILED


_SYSTEM_HINTS = {
    errno.EADDRINUSE: "another program listens there; choose another port with --port",
    errno.EADDRNOTAVAIL: "this machine does not have that address; choose another with --host",
    errno.EACCES: "permission is missing; ports below 1024 belong to the administrator",
    errno.ENOSPC: "the disk is full; free some space",
    errno.EROFS: "the file system is read-only",
    errno.ENOENT: "correct the path",
    errno.EMFILE: "raise the limit of open files, such as `ulimit -n 4096`",
}


def _system(error: OSError) -> tuple[str, str | None, int]:
    where = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{where}", _SYSTEM_HINTS.get(error.errno or 0), FAILED


def _place(error: BaseException) -> str:
    """` (module.py:12)`, the innermost line of ours that was running."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if f"{os.sep}surehook{os.sep}" in name:
            place = f" ({os.path.basename(name)}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place


def _write(what: str, hint: str | None) -> None:
    from surehook.cli.output import paint

    sys.stderr.write(paint("error:", "red", sys.stderr) + f" {what}\n")
    if hint:
        _hint(hint)


def _hint(text: str) -> None:
    from surehook.cli.output import paint

    sys.stderr.write(paint("hint: ", "yellow", sys.stderr) + f" {text}\n")
