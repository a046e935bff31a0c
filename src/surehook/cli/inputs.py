"""What a person hands in: text, `@file`, or `-` for standard input."""

from __future__ import annotations

import sys
from typing import Any

from surehook.cli.faults import REJECTED, CommandError

INPUT_BYTES_MAX = 16 * 1024 * 1024  # twice the largest batch the server takes; more is a mistake


def bytes_of(written: str) -> bytes:
    """The bytes of an argument: itself, the file after `@`, or standard input for `-`."""
    if written == "-":
        return _bounded(sys.stdin.buffer.read(INPUT_BYTES_MAX + 1))
    if written.startswith("@"):
        with open(written[1:], "rb") as file:
            return _bounded(file.read(INPUT_BYTES_MAX + 1))
    return written.encode()


def text_of(written: str) -> str:
    try:
        return bytes_of(written).decode()
    except UnicodeDecodeError:
        raise CommandError(f"{written}: not UTF-8 text", code=REJECTED) from None


def json_of(written: str) -> Any:
    """The value of a JSON argument."""
    from msgspec import DecodeError
    from msgspec.json import decode

    data = bytes_of(written)
    try:
        return decode(data)
    except (DecodeError, UnicodeDecodeError) as error:
        shown = written if written[:1] in "@-" else "the value"
        raise CommandError(
            f"{shown} is not JSON: {error}",
            hint='quote it in the shell: \'{"document_id": "doc_1"}\', or use @file or -',
            code=REJECTED,
        ) from None


def _bounded(data: bytes) -> bytes:
    if len(data) > INPUT_BYTES_MAX:
        raise CommandError(f"more than {INPUT_BYTES_MAX // 1024 // 1024} MiB of input", code=REJECTED)
    return data
