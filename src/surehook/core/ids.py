"""Ids: sixteen bytes inside, a prefix and sortable base32 outside.

An id is a uuid7 (RFC 9562 section 5.7): 48 bits of Unix milliseconds, then version, counter and
random bits. Bytes sort by time, and so does the text, because the alphabet is Crockford's in ASCII order.

A delivery's id begins with the first ten bytes of its event's id (time, version, counter and fourteen
random bits) and ends in six bytes of its own, so all deliveries of an event lie in one short range
of the primary key and need no second index. The range can, in theory, hold another event's rows too:
readers compare the event as well.
"""

from __future__ import annotations

from functools import lru_cache

from surehook.core.errors import Problem

EVENT, DELIVERY, ENDPOINT, TENANT, ATTEMPT = "evt", "dlv", "ep", "ten", "att"
EVENT_TYPE, KEY, REPLAY, NOTICE, NODE, SECRET = "ety", "key", "rpl", "ntc", "nod", "sec"

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
TEXT_CHARS = 26  # 26 × 5 bits = 130 bits: the first character is 0 to 7
SHARED_BYTES = 10

WORDS = {
    EVENT: "an event", DELIVERY: "a delivery", ENDPOINT: "an endpoint", TENANT: "a tenant", ATTEMPT: "an attempt",
    REPLAY: "a replay", NOTICE: "a notice", KEY: "a key",
}  # fmt: skip

_PAIRS = [a + b for a in ALPHABET for b in ALPHABET]
_PAIR_BYTES = [pair.encode() for pair in _PAIRS]
_SHARED_TEXT = slice(len(EVENT) + 1, len(EVENT) + 1 + SHARED_BYTES * 8 // 5)
_VARIANTS = [bytes((0x80 | byte & 0x3F,)) for byte in range(256)]
_VALUES = {char: value for value, char in enumerate(ALPHABET)}


def uuid7(now_ms: int, random: bytes) -> bytes:
    """An id for the instant `now_ms` (Unix milliseconds) from ten random bytes."""
    return counted_uuid7(now_ms, (random[0] & 0x0F) << 8 | random[1], random[2:10])


def counted_uuid7(now_ms: int, count: int, random: bytes) -> bytes:
    """The id number `count` (below 4096) of an instant, from eight random bytes."""
    return (now_ms << 16 | 0x7000 | count).to_bytes(8, "big") + _VARIANTS[random[0]] + random[1:8]


def delivery_id(event: bytes, random: bytes) -> bytes:
    """A delivery's id from its event's id and six random bytes."""
    return event[:SHARED_BYTES] + random[:6]


def delivery_range(event: bytes) -> tuple[bytes, bytes]:
    """The inclusive range of delivery ids in which all of an event's deliveries lie."""
    return event[:SHARED_BYTES] + b"\x00" * 6, event[:SHARED_BYTES] + b"\xff" * 6


def millis(raw: bytes) -> int:
    """The Unix milliseconds an id was made for."""
    return int.from_bytes(raw[:6], "big")


def floor(at_ms: int) -> bytes:
    """Lower bound of all ids made at this instant or later; all earlier ids are below it."""
    return max(0, at_ms).to_bytes(6, "big")


@lru_cache(maxsize=1024)  # an event's is asked for as its body is made, and again for the answer
def text(prefix: str, raw: bytes) -> str:
    """`evt_06a…`: the id as people see it, 26 characters after the prefix."""
    n = int.from_bytes(raw, "big")
    p = _PAIRS
    a, b, c = n >> 100, n >> 80 & 0xFFFFF, n >> 60 & 0xFFFFF  # small numbers are quicker to take apart
    d, e, f = n >> 40 & 0xFFFFF, n >> 20 & 0xFFFFF, n & 0xFFFFF
    return (
        f"{prefix}_{p[a >> 20]}{p[a >> 10 & 1023]}{p[a & 1023]}{p[b >> 10]}{p[b & 1023]}{p[c >> 10]}{p[c & 1023]}"
        f"{p[d >> 10]}{p[d & 1023]}{p[e >> 10]}{p[e & 1023]}{p[f >> 10]}{p[f & 1023]}"
    )


def delivery_text(event_text: bytes, raw: bytes) -> bytes:
    """A delivery's id as people see it, from its event's: of the bytes that they share come sixteen characters."""
    n = int.from_bytes(raw[-7:], "big")
    p = _PAIR_BYTES
    end = p[n >> 40 & 1023] + p[n >> 30 & 1023] + p[n >> 20 & 1023] + p[n >> 10 & 1023] + p[n & 1023]
    return b"dlv_" + event_text[_SHARED_TEXT] + end


def parse(prefix: str, written: str) -> bytes:
    """The sixteen bytes of a written id.

    Raises Problem `bad_id` where the prefix, the length, a character or the top bits are wrong.
    """
    raw = try_parse(prefix, written)
    if raw is None:
        raise Problem("bad_id", f"not an id of the form {prefix}_… with {TEXT_CHARS} characters", status=422)
    return raw


def try_parse(prefix: str, written: str) -> bytes | None:
    """Like `parse`, but None instead of an error: an id that cannot exist is simply not found."""
    head, _, tail = written.partition("_")
    if head != prefix or len(tail) != TEXT_CHARS:
        return None
    n = 0
    for char in tail:
        value = _VALUES.get(char)
        if value is None:
            return None
        n = n << 5 | value
    return n.to_bytes(16, "big") if n < 1 << 128 else None


def is_uuid7(raw: bytes) -> bool:
    """True if the version and variant bits are those of a uuid7."""
    return raw[6] >> 4 == 7 and raw[8] >> 6 == 2


def other_kind(prefix: str, written: str) -> str | None:
    """The sentence for an id of the wrong kind; None where it is no id at all."""
    found, sign, _ = written.partition("_")
    if not sign or found == prefix or found not in WORDS or try_parse(found, written) is None:
        return None
    return f"this is {WORDS[found]} id ({found}_…), {WORDS[prefix]} id ({prefix}_…) is wanted"
