"""Everything that proves the product and does not ship with it: run from the checkout, as `python -m lab COMMAND`.

sim/        simulated worlds: production code on virtual time, with faults drawn from a seed
bench/      measurements from outside, on real processes; campaigns of faults, noise and hostile receivers
ledger/     the ledger in memory: the model that the conformance suite and worlds of several nodes compare with
health.py   shared health within one process, for such worlds
wakeups.py  hints within one process, for such worlds
records/    figures of campaigns, as the documentation cites them
commands/   the command lines of `sim` and `bench`

The package `surehook` imports nothing of it; what is here may import all of it, and the servers of `tests`.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
