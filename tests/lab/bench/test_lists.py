"""The bench of lists works on a few rows: what it asks is looked at here, what it finds is not."""

from __future__ import annotations

from typing import Any

from lab.bench import lists


def test_every_list_and_what_is_asked_beside_them_is_answered() -> None:
    shown: dict[str, dict[str, Any]] = {}
    lists.sqlite(2_000, shown)
    assert {"deliveries: all", "deliveries: state dead"} <= shown[""].keys()
    assert {"dry run: tenant rare", "resend a dead one", "doctor's look at the ledger"} <= shown[
        "beside"
    ].keys()
