"""As much of HTTP/1.1 framing as two ends that know each other need.

The benches' own processes must cost far less than what they measure, so they look for bytes instead of
parsing. Both sides of every connection here send `content-length`; anything else is reported, not guessed.
"""

from __future__ import annotations

END = b"\r\n\r\n"


def header(head: bytes, name: bytes) -> bytes | None:
    """The value of a header in a request or response head, or None. `name` is lower case.

    Lower-case names are found at once; other spellings cost one copy of the head.
    """
    mark = b"\r\n" + name + b":"
    at = head.find(mark)
    if at < 0:
        at = head.lower().find(mark)
        if at < 0:
            return None
    start = at + len(mark)
    stop = head.find(b"\r\n", start)
    return head[start : stop if stop >= 0 else len(head)].strip()


def content_length(head: bytes) -> int:
    """The length of the body that follows `head`; 0 where none is announced.

    Raises ValueError for a chunked message, which no peer of a bench sends.
    """
    value = header(head, b"content-length")
    if value is not None:
        return int(value)
    if header(head, b"transfer-encoding") is not None:
        raise ValueError("a chunked message: the benches read content-length only")
    return 0
