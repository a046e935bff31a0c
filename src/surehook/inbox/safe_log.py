"""The inbox's loggers. What raises in logging is the application's: a filter that asks for a request's context, a handler whose
place is gone. It would end whoever logs, a worker as it tells of a failed attempt: it is told on stderr instead, once a minute.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, TypeAlias

from surehook.host.clock import SystemClock
from surehook.inbox.log_limits import OncePer, log_text

if TYPE_CHECKING:
    Adapter = logging.LoggerAdapter[logging.Logger]
else:
    Adapter = logging.LoggerAdapter

EVERY_S = 60.0
ExceptionInfo: TypeAlias = (
    bool
    | BaseException
    | tuple[type[BaseException], BaseException, TracebackType | None]
    | tuple[None, None, None]
    | None
)
_once = OncePer(SystemClock().boot, EVERY_S)


class SafeLogger(Adapter):
    """A logger whose lines raise nothing but what is to end the process."""

    def process(
        self, msg: object, kwargs: MutableMapping[str, object]
    ) -> tuple[object, MutableMapping[str, object]]:
        return msg, kwargs

    def log(
        self,
        level: int,
        msg: object,
        *args: object,
        exc_info: ExceptionInfo = None,
        stack_info: bool = False,
        stacklevel: int = 1,
        extra: Mapping[str, object] | None = None,
        **rest: object,
    ) -> None:
        # One more: whoever logs is to be named, and not this.
        given = {"exc_info": exc_info, "stack_info": stack_info, "stacklevel": stacklevel + 1, "extra": extra}
        try:
            super().log(level, msg, *args, **given, **rest)  # type: ignore[arg-type]
        except Exception as error:
            if _once.may(type(error).__name__):
                with suppress(Exception):
                    sys.stderr.write(
                        f"surehook: the application's logging raised {_line(error)}; lost: {_line(msg, *args)}\n"
                    )


def _line(said: object, *args: object) -> str:
    name = f"{type(said).__name__}: " if isinstance(said, Exception) else ""
    try:
        text = str(said)
        return name + log_text(text % args if args else text).partition("\n")[0]
    except Exception:
        return f"{name}it cannot be written"


log = SafeLogger(logging.getLogger("surehook.inbox"))
