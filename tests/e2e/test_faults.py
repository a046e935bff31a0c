"""Faults on real processes, once each; `make faults RUNS=n` does them again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.faults.listed import QUICK, SLOW
from tests.e2e.faults.place import Fault, Impossible, Place


@pytest.mark.parametrize(
    "fault",
    [*QUICK, *(pytest.param(fault, marks=pytest.mark.slow) for fault in SLOW)],
    ids=lambda fault: fault.__name__,
)
def test_the_server_keeps_its_promises_through_a_fault(fault: Fault, tmp_path: Path) -> None:
    try:
        fault(Place(tmp_path))
    except Impossible as why:
        pytest.skip(str(why))
