"""Values of arguments: text, `@file`, or `-` for standard input."""

from __future__ import annotations

import sys
from typing import get_args

from surehook.cli.errors import REJECTED, CommandError

INPUT_BYTES_MAX = 16 * 1024 * 1024  # twice the largest batch that the server accepts; more is a mistake


# Values that a shell completes; imported only then, so that no other start loads the core.
def profiles() -> list[str]:
    from surehook.core.profiles import PROFILES

    return list(PROFILES)


def states() -> list[str]:
    from surehook.core.model import State

    return list(get_args(State))


def end_states() -> list[str]:
    from surehook.core.model import END_STATES

    return list(END_STATES)


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


def json_bytes(written: str) -> bytes:
    """The bytes of a JSON argument as given. Raises CommandError where they are not JSON."""
    from msgspec import DecodeError
    from msgspec.json import decode

    data = bytes_of(written)
    try:
        decode(data)
    except (DecodeError, UnicodeDecodeError) as error:
        shown = written if written[:1] in ("@", "-") else "the value"
        raise CommandError(
            f"{shown} is not JSON: {error}",
            hint='quote it in the shell: \'{"document_id": "doc_1"}\', or use @file or -',
            code=REJECTED,
        ) from None
    return data


def json_of(written: str) -> object:
    """The value of a JSON argument."""
    from msgspec.json import decode

    return decode(json_bytes(written))


def json_each(written: str) -> list[bytes]:
    """The entries of a JSON array, or of JSON lines, each as it was given."""
    from msgspec import DecodeError, Raw
    from msgspec.json import decode

    data = bytes_of(written)
    try:
        if data.lstrip()[:1] == b"[":
            decode(data)
            return [bytes(entry) for entry in decode(data, type=list[Raw])]
        lines = [line for line in data.splitlines() if line.strip()]
        for number, line in enumerate(lines, start=1):
            try:
                decode(line)
            except (DecodeError, UnicodeDecodeError) as error:
                raise CommandError(f"line {number} is not JSON: {error}", code=REJECTED) from None
        return lines
    except (DecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"the array is not JSON: {error}", code=REJECTED) from None


def _bounded(data: bytes) -> bytes:
    if len(data) > INPUT_BYTES_MAX:
        raise CommandError(f"more than {INPUT_BYTES_MAX // 1024 // 1024} MiB of input", code=REJECTED)
    return data


def check_key(key: str) -> None:
    """Refuse an idempotency key that cannot be a header value."""
    from surehook.cli.errors import USAGE
    from surehook.client import calls

    try:
        calls.check_key(key)
    except ValueError as error:
        raise CommandError(f"--key: {error}", code=USAGE) from None


def policy_of(written: str) -> object:
    """A policy as the API takes it: a name, an object, or None for `null`."""
    text = text_of(written).strip()
    return json_of(text) if text.startswith("{") or text == "null" else text


def pairs_of(written: list[str]) -> dict[str, str]:
    """`NAME=VALUE` arguments."""
    from surehook.cli.errors import USAGE

    pairs = {}
    for text in written:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise CommandError(f"{text!r} is not NAME=VALUE", code=USAGE)
        pairs[name] = value
    return pairs
