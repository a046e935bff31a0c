"""Bodies with a wanted CRC-32. The sum is linear in the bits of the text, so 48 free bits of 8 letters are more than enough."""

import zlib


def collide(head: bytes, tail: bytes, like: bytes) -> bytes:
    """`head` + 48 letters out of a and b + `tail`, with the CRC-32 and not the text of `like`."""
    base = bytearray(head + b"a" * 48 + tail)
    start, wanted = zlib.crc32(base), zlib.crc32(like)
    # Turning letter i from a to b changes the sum by the same difference whatever the others are.
    rows = []
    for place in range(48):
        turned = bytearray(base)
        turned[len(head) + place] ^= 3
        rows.append((zlib.crc32(turned) ^ start, 1 << place))
    need, chosen = start ^ wanted, 0
    for bit in range(32):
        pivot = next((row for row in rows if row[0] >> bit & 1), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows = [(d ^ pivot[0], c ^ pivot[1]) if d >> bit & 1 else (d, c) for d, c in rows]
        if need >> bit & 1:
            need, chosen = need ^ pivot[0], chosen ^ pivot[1]
    assert need == 0
    for place in range(48):
        if chosen >> place & 1:
            base[len(head) + place] ^= 3
    assert zlib.crc32(base) == wanted
    return bytes(base)
