"""How much of a text's time a pattern may take: the size of the machine that the engine makes of it, from above.

The engine is linear in the text. But where its table of states overflows, it keeps all places of the pattern that the text
may have come to, and each character costs as many steps as there are. A repetition counts as often as it says.
"""

from __future__ import annotations

import re

MOST = 100_000  # the engine refuses larger ones before
_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])+\]|\{(\d*)(,?)(\d*)\}|[()|*+?.]|.", re.DOTALL)


def weigh(pattern: str) -> tuple[int, int]:
    """Places in it, and how many there would be without repetitions. Of a text of n characters each costs at most as many
    steps as there are places, nor can more be reached by n characters than n times the second."""
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
