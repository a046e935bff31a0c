"""Both ends of the wire: what becomes of an event at its receiver is shown by its sender.

A real server, a real inbox on SQLite in a process of its own, and people who decide from a third process.
"""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surehook.core.instants import parse
from tests.e2e.calling import until
from tests.e2e.shapes import check
from tests.e2e.shop import Shop
from tests.servers.ports import reserve

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PREPARE = "from tests.inbox.programs.told import inbox; inbox.create_tables()"
SAID = """
import sys
from tests.inbox.programs.told import inbox
kept, refused = ([one.ref for one in inbox.events(id=id)][0] for id in sys.argv[1:])
assert inbox.finalize(kept) and inbox.reject(refused, "not_compliant", "no passport")
inbox.close()
"""


class Application:
    """The receiving application: started, stopped, and asked from other processes."""

    def __init__(self, folder: Path) -> None:
        self.port = reserve()
        self.url = f"http://127.0.0.1:{self.port}/hooks/surehook"
        self._database = f"sqlite:///{folder / 'application.db'}"
        self._process: subprocess.Popen[bytes] | None = None
        self._settings: dict[str, str] = {}

    def know(self, secret: str, receipts: str) -> None:
        self._settings = {
            "TOLD_DATABASE": self._database, "TOLD_SECRET": secret, "TOLD_RECEIPTS": receipts,
        }  # fmt: skip
        self._run("-c", PREPARE)

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "--port", str(self.port), "--log-level", "error", "tests.inbox.programs.told:app"],
            cwd=ROOT, env=self._environment,
        )  # fmt: skip
        until(self._answers, "the application answers", 30)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None

    def people_say(self, kept: str, refused: str) -> None:
        """One event stands, the other does not: said in a process that ends with it."""
        self._run("-c", SAID, kept, refused)

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "PYTHONPATH": str(ROOT / "src"), **self._settings}

    def _run(self, *words: str) -> str:
        ran = subprocess.run(
            [sys.executable, *words], cwd=ROOT, env=self._environment, capture_output=True, text=True, timeout=60
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def _answers(self) -> bool:
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            wire.request("GET", "/hooks/nobody")
            return wire.getresponse().status == 404
        except OSError:
            return False
        finally:
            wire.close()


@pytest.fixture
def application(tmp_path: Path) -> Iterator[Application]:
    made = Application(tmp_path)
    yield made
    made.stop()


def test_what_becomes_of_documents_is_shown_by_their_sender(alone: Shop, application: Application) -> None:
    """Processed by the application, decided on by people elsewhere, while the sender is away."""
    tenant = alone.tenant()
    endpoint = alone.endpoint(tenant, application.url, receipts={"finalize_within_s": 3600})
    check("endpoint", endpoint)
    application.know(endpoint["secret"], f"http://127.0.0.1:{alone.server.port}/v1/receipts")
    application.start()
    begun = time.time()
    kept, refused = alone.publish(tenant), alone.publish(tenant)

    def told(event: str, stage: str) -> Any:
        receipt = check("delivery", alone.delivery(event))["receipt"]
        return receipt if receipt is not None and receipt["stage"] == stage else None

    for event in (kept, refused):
        receipt = until(lambda event=event: told(event, "processed"), "processed is shown", 15)  # type: ignore[misc]
        assert begun * 1000 - 1 <= parse(receipt["accepted_at"]) <= parse(receipt["processed_at"])
        assert alone.finished(event)["state"] == "delivered"
    alone.server.stop()
    application.people_say(kept, refused)
    alone.start()
    until(lambda: told(kept, "finalized"), "finalized is shown", 30)
    receipt = until(lambda: told(refused, "rejected"), "rejected is shown", 30)
    assert (receipt["code"], receipt["note"], receipt["finalized_at"]) == (
        "not_compliant",
        "no passport",
        None,
    )
    found = list(alone.api.pages("/v1/deliveries", tenant=tenant, receipt="finalized"))
    assert [row["event"] for row in found] == [kept]
    assert alone.notices(tenant, "delivery.unfinalized") == []
