"""One text for code that blocks and code that awaits: a script yields each effect, and a driver finishes it.

An effect is whatever a port returned: from a blocking port the answer itself, from an awaiting port an awaitable of the answer.

    def turn(self) -> Script[int]:
        rows: list[Row] = yield self._store.run(claim)
        yield self._signal.wait(seconds)
        return len(rows)

`run(script)` hands blocking answers back; `await run_async(script)` awaits each one first. An error reaches the script in the
same line with either driver, so that `try` and `finally` mean the same. Scripts call one another with `yield from`.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

T = TypeVar("T")

# An effect and its answer may be of any type: the script names the type of the answer in the line that yields.
Script: TypeAlias = Generator[Any, Any, T]


def run(script: Script[T]) -> T:
    """Finish a script over blocking ports."""
    try:
        answer = next(script)
        while True:
            answer = script.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result


async def run_async(script: Script[T]) -> T:
    """Finish a script over awaiting ports. A cancellation, too, is raised in the line that waits."""
    try:
        effect = next(script)
        while True:
            try:
                answer = await effect
            except BaseException as error:
                effect = script.throw(error)
            else:
                effect = script.send(answer)
    except StopIteration as end:
        result: T = end.value
        return result
