"""Noise against `surehook.verify`: near misses of every provider's messages, and only VerifyError may come out.

    python -m lab fuzz-verify --inputs 10000000 --seed 1

Each input is a genuine request with some of its parts mutated: bytes flipped, cut, doubled, other values, other types.
"""

import argparse
import json
import random
import sys
import time
from pathlib import Path

import surehook
from surehook.verify import Key
from tests.inbox.signers import NOW, SIGNERS

JUNK = [
    None, 0, -1, 1.5, float("nan"), float("inf"), True, "", " ", "\0", "é", "\ud800", "v1,", ",", "=", "t=", "x" * 9000, b"", b"\xff",
    b"\x00", b"{", b"[" * 3000, b'{"a":1,"a":2}', b"9" * 400, b"\xef\xbb\xbf{}", [], {}, (), [1], {"a": None}, object(), "9" * 20,
    "sha256=", "sha256=00", "v0=", "1_0", "٣", "multipart/form-data; boundary=", "whsec_", "whpk_", b"a=b&c", "%", "1e5", -(2**70),
]  # fmt: skip
SAY_EVERY = 500_000  # inputs, about half a minute
NAMES = sorted(SIGNERS)
PARTS = ["body"] * 12 + ["headers"] * 16 + ["secret"] * 3 + ["now", "url", "known", "tolerance_s"]


class Inputs:
    """Mutated requests from a seed: the same seed, the same requests."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.genuine = {
            name: (body, list(signer(body, secret, NOW).items()), key, options)
            for name, (signer, secret, key, body, _, _, options) in SIGNERS.items()
        }

    def next(self):
        """Provider and arguments of one call."""
        chance = self.chance
        name = chance.choice(NAMES)
        body, headers, key, options = self.genuine[name]
        given = {"body": body, "headers": list(headers), "secret": key, "now": NOW, **options}
        for _ in range(chance.choice((0, 1, 1, 2, 3))):
            part = chance.choice(PARTS)
            given[part] = getattr(self, "_" + part, self._junk)(given.get(part))
        return name, given

    def _junk(self, _):
        return self.chance.choice(JUNK)

    def _body(self, body):
        if not isinstance(body, bytes) or self.chance.random() < 0.1:
            return self._junk(body)
        return self._mutated(body)

    def _headers(self, headers):
        pairs = isinstance(headers, list) and all(isinstance(one, tuple) for one in headers)
        if not pairs or self.chance.random() < 0.03:
            return self._junk(headers)
        headers = list(headers)
        act = self.chance.randrange(5)
        place = self.chance.randrange(len(headers)) if headers else 0
        if act == 0 or not headers:
            headers.append(
                (self.chance.choice([*(n for n, _ in headers), "svix-id", None]), self._junk(None))
            )
        elif act == 1:
            del headers[place]
        elif act == 2:
            headers[place] = (headers[place][0], self._junk(None))
        elif act == 3:
            headers.append(headers[place])
        else:
            name, value = headers[place]
            if isinstance(value, str):
                value = self._mutated(value.encode("utf-8", "surrogatepass")).decode("latin-1")
            headers[place] = (name, value)
        return headers

    def _secret(self, key):
        act = self.chance.randrange(4)
        if act == 0:
            return self._junk(key)
        if act == 1:
            return [self._junk(key), key]
        if act == 2:
            return Key(key, "k", self._junk(None), self._junk(None)) if isinstance(key, str) else key
        return [key, SIGNERS[self.chance.choice(NAMES)][2]]

    def _mutated(self, raw):
        chance = self.chance
        raw = bytearray(raw)
        for _ in range(chance.choice((1, 1, 2, 4))):
            place = chance.randrange(len(raw) + 1)
            act = chance.randrange(4)
            if act == 0 and place < len(raw):
                raw[place] ^= 1 << chance.randrange(8)
            elif act == 1:
                del raw[place : place + chance.randrange(1, 9)]
            elif act == 2:
                raw[place:place] = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 5)))
            else:
                raw[place:place] = raw[place : place + chance.randrange(1, 9)]
        return bytes(raw)


def judged(name, given):
    """`believed`, or the code of the refusal; anything else raised is what this looks for."""
    try:
        message = surehook.verify(name, **given)
    except surehook.VerifyError as refusal:
        return "unforeseen" if "unreadable request" in refusal.detail else refusal.code
    assert isinstance(message.id, str)
    message.each()
    return "believed"


def main(args):
    parser = argparse.ArgumentParser(prog="python -m lab fuzz-verify", description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, help="write the figures to this file, JSON")
    asked = parser.parse_args(args)
    inputs, counts, begun = Inputs(asked.seed), {}, time.perf_counter()
    for number in range(asked.inputs):
        name, given = inputs.next()
        try:
            verdict = judged(name, given)
        except BaseException:
            print(f"fuzz-verify: input {number} of seed {asked.seed}: {name} {given!r}"[:4000])
            raise
        counts[verdict] = counts.get(verdict, 0) + 1
        if (number + 1) % SAY_EVERY == 0:
            print(f"{number + 1:,} of {asked.inputs:,}", file=sys.stderr, flush=True)
    seconds = round(time.perf_counter() - begun, 1)
    if asked.record is not None:
        told = {
            "version": surehook.__version__,
            "command": "make fuzz-verify",
            "seed": asked.seed,
            "inputs": asked.inputs,
            "foreign_exceptions": 0,
            "verdicts": dict(sorted(counts.items())),
            "seconds": seconds,
        }
        asked.record.write_text(json.dumps(told, indent=2) + "\n")
    for verdict in sorted(counts):
        print(f"{verdict:22}{counts[verdict]:>12,}")
    print(f"fuzz-verify: inputs={asked.inputs} foreign=0 seconds={seconds}")
    return 0
