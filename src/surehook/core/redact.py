"""The part of a secret, a header or a URL that may be shown in logs, consoles and error messages.

It helps a person to recognise the thing, and nobody to use it. Header values are hidden
unless their name is known to be harmless: a list of secret names would always be one name short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import SplitResult, urlsplit

HIDDEN = "•••"

_PREFIX = re.compile(r"[a-z]{2,8}_", re.ASCII)
_UNPRINTABLE = re.compile(
    r"[^\x20-\x7e\xa1-\U0010ffff]|[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
HARMLESS = frozenset({
    "accept", "age", "allow", "cache-control", "connection", "content-encoding", "content-language",
    "content-length", "content-type", "date", "etag", "expires", "host", "keep-alive", "last-modified", "location",
    "retry-after", "server", "traceparent", "transfer-encoding", "user-agent", "vary", "via", "webhook-attempt",
    "webhook-delivery-id", "webhook-id", "webhook-key-id", "webhook-replay", "webhook-retry-count",
    "webhook-timestamp", "x-insigner-delivery-id", "x-request-id", "x-yousign-retry-count",
})  # fmt: skip


# Words in the names of headers that hold secrets. The list may be one word short: secrets that must never be seen belong
# in an endpoint's authentication, which is never shown.
SECRET_WORDS = frozenset({
    "authorization", "authentication", "auth", "cookie", "token", "secret", "password", "passwd", "pwd", "passphrase",
    "pass", "passcode", "pin", "otp", "pat",    "credential", "apikey", "bearer", "jwt", "session", "sessionid", "signature",
})  # fmt: skip
HARMLESS_KEYS = frozenset({"idempotency", "routing", "partition", "sort", "cache", "surrogate", "primary"})


def secret(text: str) -> str:
    """`whsec_•••`: the prefix that says what it is, nothing of the rest, not even its length."""
    prefix = _PREFIX.match(text)
    return f"{prefix[0] if prefix else ''}{HIDDEN}"


def header(name: str, value: str) -> str:
    """A header's value, shown only under a name known to be harmless; a location like any URL."""
    lowered = name.lower()
    if lowered not in HARMLESS:
        return HIDDEN
    return url(value) if lowered == "location" else printable(value)


def is_secret(name: str) -> bool:
    """True if a header of this name holds a secret, by the words of the name."""
    words = name.lower().replace("_", "-").split("-")
    if words[-1] == "key" and len(words) > 1:
        return words[-2] not in HARMLESS_KEYS
    return any(word in SECRET_WORDS or word.removesuffix("s") in SECRET_WORDS for word in words)


def configured(given: Mapping[str, str]) -> dict[str, str]:
    """Headers that an operator configured, shown unless their name says that they hold a secret."""
    return {name: HIDDEN if is_secret(name) else value for name, value in given.items()}


def headers(given: Mapping[str, str]) -> dict[str, str]:
    return {printable(name): header(name, value) for name, value in given.items()}


def request(said: bytes, private: bytes) -> dict[str, str]:
    """The header lines of a request as they are kept: `said` by us as they were, of the endpoint's own (`private`) only the
    names, since their values may be credentials under any name. The signature is left out: whoever reads it could pose as
    us for minutes."""
    shown = {name: value for name, value in _fields(said) if name != "webhook-signature"}
    return shown | {name: HIDDEN for name, _ in _fields(private)}


def _fields(lines: bytes) -> Iterator[tuple[str, str]]:
    for line in lines.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(": ")
        if colon:
            yield name.lower(), value


def url(text: str) -> str:
    """Scheme, host, port and path. User info and the query are hidden, where they exist; a fragment is dropped."""
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return HIDDEN
    if not parts.scheme or not host:
        return printable(text.partition("?")[0]) if _is_path(text, parts) else HIDDEN
    shown_host = f"[{host}]" if ":" in host else host
    user = f"{HIDDEN}@" if "@" in parts.netloc else ""
    query = f"?{HIDDEN}" if parts.query else ""
    return printable(
        f"{parts.scheme}://{user}{shown_host}{f':{port}' if port is not None else ''}{parts.path}{query}"
    )


def printable(text: str, *, chars: int = 512) -> str:
    """A stranger's text for terminals and logs: controls, line ends and direction marks escaped, length bounded."""
    cut = text if len(text) <= chars else text[: chars - 1] + "…"
    return _UNPRINTABLE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), cut)


def _is_path(text: str, parts: SplitResult) -> bool:
    """A relative reference, as a Location may be: it begins with one slash."""
    return not parts.netloc and not parts.scheme and text.startswith("/")
