"""Redirects: the answers that are followed, and their destination. Pure; the guard judges the result like any other URL.

`strict`: 307 and 308, which keep method and body by definition. `yousign`: also 301, 302 and 303, with the
same method and body, as that platform documents. A hop never goes from https to http. The endpoint's own
headers may be credentials for its origin and stay there (`Request.private`).
"""

from __future__ import annotations

import re

from surehook.core.http1.answer_head import fields
from surehook.core.url import Url

FOLLOWED = {"strict": frozenset({307, 308}), "yousign": frozenset({301, 302, 303, 307, 308})}

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:", re.ASCII)


class RedirectRefused(Exception):
    """This redirect is not followed, whatever it leads to."""


def asks(status: int, head: bytes, style: str) -> bool:
    """True if an answer asks for a hop that the style follows."""
    return status in FOLLOWED[style] and bool(fields(head, b"location"))


def where(base: Url, head: bytes) -> str:
    """The URL that `Location` names, as text to be judged. Raises Refused where it is unclear."""
    found = fields(head, b"location")
    if len(found) != 1 or not found[0]:
        raise RedirectRefused
    try:
        text = found[0].decode("ascii")
    except UnicodeDecodeError:
        raise RedirectRefused from None
    if _ABSOLUTE.match(text):
        return text
    if text.startswith("//") or "\\" in text:
        raise RedirectRefused
    return f"{base.scheme}://{base.authority}{_merge(base.path, text)}"


def may_go(base: Url, following: Url) -> bool:
    """True if the hop keeps or raises the protection of the connection."""
    return base.scheme == following.scheme or following.scheme == "https"


def _merge(base: str, reference: str) -> str:
    """RFC 3986 section 5.2 for a reference without scheme and authority."""
    if reference.startswith("?"):
        return base.partition("?")[0] + reference
    path, mark, query = reference.partition("?")
    if not path.startswith("/"):
        path = base.partition("?")[0].rpartition("/")[0] + "/" + path
    kept: list[str] = []
    parts = path.split("/")[1:]
    for part in parts:
        if part == "..":
            del kept[-1:]
        elif part != ".":
            kept.append(part)
    if parts[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept) + mark + query


def same_origin(one: Url, other: Url) -> bool:
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)
