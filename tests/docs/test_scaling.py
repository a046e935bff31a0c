"""The sizing of docs/scaling.md is its arithmetic, and what the page says of the code is so."""

from __future__ import annotations

import math
import re

import pytest

from surehook.config import Settings
from surehook.core import parcel
from surehook.delivery.settings import EngineSettings
from tests.docs.pages import PAGES, ROOT, first_column, section

PAGE = "docs/scaling.md"
TEXT = " ".join(PAGES[PAGE].split())
HISTORY_BYTES, OUTSIDE_BYTES, INSIDE_BYTES = 1_200, 1_900, 2_000
A_PRIMARY = 20_000  # deliveries a second that the page plans a primary with


def rows(heading: str) -> list[list[str]]:
    """The cells of a section's first table, without its head."""
    found = re.search(r"(?:^\|.*\n)+", section(PAGE, heading), re.MULTILINE)
    assert found is not None
    return [line[2:-2].split(" | ") for line in found[0].splitlines()[2:]]


def number(text: str) -> float:
    return float(text.split(" (")[0].replace(",", ""))


@pytest.fixture(scope="module")
def cost() -> dict[str, float]:
    (row,) = [row for row in rows("What a delivery costs") if row[:2] == ["`split`", "single"]]
    return {"ours": number(row[4]), "database": number(row[5]), "log": number(row[7])}


@pytest.mark.parametrize("row", rows("Sizing"), ids=lambda row: row[0])
def test_each_row_of_the_sizing_is_computed_from_what_a_delivery_costs(
    row: list[str], cost: dict[str, float]
):
    rate = number(row[0])
    assert number(row[2]) == max(1, math.ceil(2 * rate * cost["ours"] / 1e6))
    if row[3] != "–":
        assert number(row[3]) == max(1, math.ceil(2 * rate * cost["database"] / 1e6))
    outside, inside = row[6].split(" / ")
    for written, each in ((row[4], cost["log"]), (outside, OUTSIDE_BYTES), (inside, INSIDE_BYTES)):
        assert number(written) == pytest.approx(rate * each / 1e6, rel=0.06)
    assert number(row[5]) == pytest.approx(rate * 86_400 * HISTORY_BYTES / 1e9, rel=0.06)
    installations = re.match(r"(\d+) installations", row[1])
    assert (int(installations[1]) if installations else 1) == math.ceil(rate / A_PRIMARY)


def test_the_shapes_that_were_measured_are_those_of_the_bench():
    source = (ROOT / "lab/bench/scale_fleet.py").read_text()
    shapes = set(re.findall(r'^    "(\w+)": Shape\(', source, re.MULTILINE))
    measured = {row[0].strip("`") for row in rows("What a delivery costs")}
    assert measured == shapes
    assert measured <= set(first_column(section(PAGE, "The tiers")))


def test_the_numbers_of_the_code_are_the_codes():
    engine, settings = EngineSettings(), Settings()
    assert f"a worker has {settings.slots_first} requests in flight a lane" in TEXT
    assert settings.slots_first == settings.slots_retry
    assert f"One endpoint gets {settings.endpoint_slots} from each worker" in TEXT
    assert f"once leases run short ({engine.lease_s - engine.lease_left_s:.0f} s)" in TEXT
    assert engine.endpoint_share == 1_000
    assert "beyond a thousand in a worker's memory" in TEXT
    assert f"carries up to {parcel.IDS_MAX} ids a message" in TEXT
