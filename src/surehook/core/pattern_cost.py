"""Upper bound of a pattern's cost per character: the size of the automaton that the engine builds from it.

The engine is linear in the text. But where its table of states overflows, it keeps all places of the pattern that the text
may have reached, and each character costs one step per place. A repetition counts as often as it may occur.
"""

from __future__ import annotations

import re

MOST = 100_000  # the engine refuses larger ones before
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|\{(\d*)(,?)(\d*)\}|[()|*+?.]|.", re.DOTALL)


def weigh(pattern: str) -> tuple[int, int]:
    """Places in the pattern, and how many there would be without repetitions. Each character costs at most as many steps as
    there are places; n characters cannot reach more of them than n times the second number."""
    open_sizes: list[int] = []
    size, signs = 1, 0
    last = 0
    for match in _TOKEN.finditer(pattern):
        sign = match.group()
        if sign == "(":
            open_sizes.append(size)
            size, last = 1, 0
        elif sign == ")" and open_sizes:
            last = size
            size += open_sizes.pop()
        elif sign[0] == "{" and len(sign) > 1:
            times = max(int(match.group(1)[:6] or 0), int(match.group(3)[:6] or 0), 1)
            size += last * (times - 1)
            last *= times
        else:
            last = 1 if sign not in "*+?|" else last
            size += 1
            signs += sign not in ("^", "$")
    return min(size, MOST), max(signs, 1)
