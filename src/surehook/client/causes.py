"""Reasons for a missing answer in words: the one place where errors of sockets, names and TLS are told apart."""

from __future__ import annotations

import socket

from surehook.client.http1 import NotHttp


def cause_of(error: BaseException, timeout_s: float) -> str:
    match error:
        case NotHttp():
            return str(error)
        case TimeoutError():
            return f"no answer within {timeout_s:g} s"
        case ConnectionRefusedError():
            return "connection refused"
        case ConnectionResetError() | BrokenPipeError():
            return "the connection broke off"
        case socket.gaierror():
            return "the host name is not known"
        case _ if getattr(error, "reason", None) == "WRONG_VERSION_NUMBER":
            return "TLS is not spoken there; is it an http:// address?"
        case _ if type(error).__module__ == "ssl":
            return f"TLS: {getattr(error, 'verify_message', None) or getattr(error, 'reason', None) or error}"
        case OSError():
            return error.strerror or str(error) or type(error).__name__
        case _:
            return str(error)
