"""`python -m lab powerloss`: a long campaign, and the controls that show it can see.

Exit status 0: nothing acknowledged was lost, and both controls were caught within their ten seeds. A seed
that was caught is one line; `--seed N --points 1` replays it.
"""

from __future__ import annotations

import argparse
import time

from .campaign import LIVES, Control, campaign

CONTROL_SEEDS = 10
WORDS_MAX = 2_000  # of a catch; two whole books are longer
CONTROLS: tuple[Control, ...] = ("normal", "lies")


def main(args: list[str]) -> int:
    asked = argparse.ArgumentParser(prog="python -m lab powerloss", description=__doc__)
    asked.add_argument("--points", type=int, default=5_000, help="power losses to survive (5000)")
    asked.add_argument("--seed", type=int, default=0, help="the first world's seed (0)")
    asked.add_argument("--no-controls", action="store_true", help="leave the negative controls out")
    options = asked.parse_args(args)
    failed = not _run("full", points=options.points, seed=options.seed)
    for control in () if options.no_controls else CONTROLS:
        failed |= not _control(control, seed=options.seed)
    return int(failed)


def _run(name: str, *, points: int, seed: int) -> bool:
    began = time.monotonic()
    tally, caught = campaign(points=points, seed=seed)
    took = time.monotonic() - began
    refused = ", ".join(f"{error} {count}" for error, count in sorted(tally.failed.items()))
    print(
        f"{name}: points={tally.points} worlds={tally.worlds} calls={tally.calls} lost={len(caught)}"
        f" under_way={tally.under_way} of_them_kept={tally.survived} while_opening={tally.in_recovery}"
        f" refused=({refused}) seconds={took:.1f} points_per_s={tally.points / took:.0f}"
    )
    for at, why in caught:
        print(f"  seed {at}: {why[:WORDS_MAX]}")
    return not caught


def _control(control: Control, *, seed: int) -> bool:
    tally, caught = campaign(points=CONTROL_SEEDS * LIVES, seed=seed, control=control)
    found = f"caught at seed {caught[0][0]}: {caught[0][1].splitlines()[0]}" if caught else "NOT CAUGHT"
    print(f"control {control}: {found} ({tally.worlds + 1} seeds)")
    return bool(caught)
