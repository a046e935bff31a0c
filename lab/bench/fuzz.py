"""Noise against the two readers of foreign text: answers and URLs.

    python -m lab fuzz [--inputs 1000000] [--seed 1]

Inputs are the cases of the test tables, cut, spliced, repeated and damaged. An answer must end as a status
or a named failure, within the caps, however it is segmented; a URL as itself or as a Problem. Anything
else stops the run with the input and its seed.
"""
# ruff: noqa: T201, E501, PT018 (a program that prints)

from __future__ import annotations

import argparse
import json
import random
import sys
import time

from lab import ROOT
from surehook.core.errors import Problem
from surehook.core.http1.answer import DONE, STRANGERS, AnswerReader
from surehook.core.http1.answer_head import HEADERS_KEPT_BYTES, kept_headers
from surehook.core.url import NetworkPolicy, parse
from surehook.wire import redirect
from tests.wire.answers import CASES

HELD_MAX = 160 * 1024  # one fed segment of 64 KiB, a head, a body, and the copy being searched
NOISE = [b"\r", b"\n", b"\r\n", b"\r\n\r\n", b":", b" ", b"\t", b"\x00", b"\xff", b"0", b"5", b"ffffffffffffffff", b";", b",", b"HTTP/1.1 ",
         b"200", b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n", b"connection: close\r\n", b"0\r\n\r\n"]  # fmt: skip
OPEN = NetworkPolicy(allow_http=True)


def damaged(chance: random.Random, corpus: list[bytes]) -> bytes:
    data = bytearray(chance.choice(corpus))
    for _ in range(chance.randrange(6)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(6):
            case 0:
                del data[at : at + chance.randrange(1, 9)]
            case 1:
                data[at:at] = chance.choice(NOISE)
            case 2:
                data[at:at] = chance.randbytes(chance.randrange(1, 5))
            case 3:
                other = chance.choice(corpus)
                data[at:at] = other[chance.randrange(len(other) + 1) :][:400]
            case 4:
                data[at:at] = data[at : at + 40] * chance.randrange(1, 8)
            case _ if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
    return bytes(data)


def check_answer(data: bytes, chance: random.Random) -> None:
    reader = AnswerReader()
    at = 0
    while at < len(data) and reader.phase != DONE:
        size = chance.choice((1, 2, 17, 300, 65_536))
        reader.feed(data[at : at + size])
        at += size
        assert reader.held_bytes <= HELD_MAX
    if reader.phase != DONE:
        reader.end()
    assert reader.phase == DONE
    assert reader.status is None or (200 <= reader.status <= 599 and reader.failure is None)
    assert (
        len(reader.body) <= STRANGERS.body_kept_bytes and len(kept_headers(reader.head)) <= HEADERS_KEPT_BYTES
    )
    if reader.reusable:
        assert reader.status is not None
    if reader.status is not None:
        base = parse("https://example.com/a/b?c", OPEN)
        try:
            if redirect.asks(307, reader.head, "strict"):
                parse(redirect.where(base, reader.head), OPEN)
        except (redirect.RedirectRefused, Problem):
            pass


def check_url(text: str) -> None:
    try:
        read = parse(text, OPEN)
    except Problem:
        return
    again = parse(f"{read.scheme}://{read.authority}{read.path}", OPEN)
    assert (again.origin, again.path) == (read.origin, read.path)


def main(args: list[str]) -> int:
    """Feed so many inputs; the first that breaks a reader is raised with its seed."""
    parser = argparse.ArgumentParser(prog="python -m lab fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(args)
    answers = [case.data[:3000] for case in CASES]
    core = ROOT / "tests" / "core"
    urls = [json.loads(line)[1] for line in (core / "ssrf_urls.jsonl").read_text().splitlines()]
    urls += [
        f"http://{json.loads(line)[1]}/x" for line in (core / "ssrf_hosts.jsonl").read_text().splitlines()
    ]
    encoded = [url[:300].encode() for url in urls]
    began = time.perf_counter()
    for count in range(options.inputs):
        chance = random.Random(f"{options.seed}:{count}")
        try:
            if count % 2:
                check_url(damaged(chance, encoded).decode("utf-8", "replace"))
            else:
                check_answer(damaged(chance, answers), chance)
        except Exception:
            print(f"input {count} of seed {options.seed} broke a reader", file=sys.stderr)
            raise
        if count and count % 100_000 == 0:
            print(f"{count:,} inputs, {time.perf_counter() - began:.0f} s", flush=True)
    print(f"{options.inputs:,} inputs, 0 foreign exceptions, {time.perf_counter() - began:.0f} s")
    return 0
