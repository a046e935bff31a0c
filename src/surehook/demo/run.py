"""Runs the demonstration: start everything, publish, kill, restart, wait until what can end has ended, and count."""

from __future__ import annotations

import secrets
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from surehook.client import Client, Refused, Unreachable
from surehook.core.answers import DeliveryOut
from surehook.demo.children import Application, Receivers, Server
from surehook.demo.kept import applied, look
from surehook.demo.plan import (
    APPLICATION,
    DOCUMENTS,
    END_S,
    KILL_APPLICATION_AT,
    KILL_SERVER_AT,
    PARTS,
    PUBLISH_S,
    SETTLE_S,
    TENANT,
    workflow,
)
from surehook.demo.process import DemoError
from surehook.demo.publishing import DemoPublisher
from surehook.demo.tally import OPEN_STATES, Totals, by_endpoint, tally
from surehook.demo.watching import ProgressDisplay
from surehook.demo.words import explain

LOOK_S = 0.5


def run(*, documents: int = DOCUMENTS) -> int:
    """Play it in a temporary folder. The result is the last line on stdout; 0 only if nothing was lost or applied twice."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="surehook-demo-") as folder, ProgressDisplay() as watch:
        play = Play(Path(folder), watch, began, documents)
        try:
            totals = play.run()
        except KeyboardInterrupt:
            watch.tell("interrupted", at_s=time.monotonic() - began)
            raise
        finally:
            play.stop()
    return conclude(totals, time.monotonic() - began)


def conclude(totals: Totals, seconds: float) -> int:
    """Print the last line; the exit code is 0 only if the totals are good."""
    sys.stdout.write(totals.line(seconds) + "\n")
    sys.stdout.flush()
    return 0 if totals.is_good else 1


class Play:
    """The cast: one server, one application, one process of other receivers, one publisher."""

    def __init__(self, folder: Path, watch: ProgressDisplay, began: float, documents: int) -> None:
        self._key = secrets.token_urlsafe(24)
        self._server = Server(folder, self._key)
        self._application = Application(folder)
        self._receivers = Receivers(self._application.port)
        self._client = Client(self._server.url, self._key, timeout_s=5.0, patience_s=0)
        self._steps = list(workflow(documents))
        self._publisher = DemoPublisher(
            self._server.url, self._key, self._steps, seconds=PUBLISH_S * documents / DOCUMENTS
        )
        self._names: dict[str, str] = {}  # endpoint id to receiver
        self._watch = watch
        self._began = began
        self._deliveries: list[DeliveryOut] = []

    def run(self) -> Totals:
        self._set_stage()
        self._tell(f"publishing {len(self._steps)} events of a signing workflow")
        self._publisher.start()
        self._until_accepted(KILL_SERVER_AT)
        pid = self._server.kill()
        self._tell(
            f"kill -9 {pid}, the server, {len(self._publisher.accepted)} events accepted; the publisher repeats"
        )
        self._tell(f"the server is back after {self._server.start():.1f} s, on the same file")
        self._until_accepted(KILL_APPLICATION_AT)
        pid = self._application.kill()
        self._tell(
            f"kill -9 {pid}, the application, {applied(self._application.database)} events applied; the sender retries"
        )
        self._tell(f"the application is back after {self._application.start():.1f} s, on the same file")
        self._until_accepted(1.0)
        self._tell("everything is published; waiting for what can end")
        self._until_settled()
        return self._count()

    def stop(self) -> None:
        """End all processes, even if waiting for one of them is interrupted."""
        with ExitStack() as ends:
            for one in (self._receivers, self._application, self._server):
                ends.callback(one.stop)
            self._publisher.stop()
            self._client.close()

    def _set_stage(self) -> None:
        self._receivers.start()
        self._application.begin()
        took = self._server.start()
        self._tell(f"the server listens on {self._server.url} after {took:.1f} s")
        self._client.tenants.create(id=TENANT, name="Demonstration")
        keys = {}
        for part in PARTS:
            made = self._client.endpoints.create(
                tenant=TENANT,
                url=self._receivers.urls[part.name],
                event_types=list(part.event_types),
                policy=part.policy,
                description=part.about,
            )
            self._names[made.id] = part.name
            assert made.secret is not None
            keys[part.name] = made.secret
        self._receivers.hand_out(keys)
        self._application.know(keys[APPLICATION])
        self._application.wait()
        for part in PARTS:
            self._tell(f"{part.name.ljust(8)}  {part.about}")

    def _until_accepted(self, share: float) -> None:
        """Watch until this fraction of the workflow is accepted."""
        publisher = self._publisher
        while publisher.share < share and not publisher.is_done:
            self._look(f"publishing, {len(publisher.accepted)} of {len(self._steps)} accepted")
            time.sleep(LOOK_S if share - publisher.share > 0.1 else LOOK_S / 10)
        if publisher.failure is not None:
            raise DemoError(f"the publisher gave up: {publisher.failure}")

    def _until_settled(self) -> None:
        """Watch until all deliveries that are sure to end have ended and all events have taken effect, or the time is over."""
        until = min(time.monotonic() + SETTLE_S, self._began + END_S)
        ending = {part.name for part in PARTS if part.ends}
        while time.monotonic() < until:
            taken = self._look("settling")
            waiting = sum(
                1 for d in self._deliveries if d.state in OPEN_STATES and self._names[d.endpoint] in ending
            )
            if self._deliveries and not waiting and taken == len(self._steps):
                return
            time.sleep(LOOK_S)

    def _count(self) -> Totals:
        self._application.stop()  # so that what is counted is what is on disk
        memories = self._receivers.seen()
        kept = look(self._application.database)
        self._deliveries = self._list()
        application = next(id for id, name in self._names.items() if name == APPLICATION)
        totals = tally(self._publisher.accepted, self._deliveries, memories.values(), kept, application)
        counts = by_endpoint(self._names, self._deliveries)
        self._watch.show(counts, status="done", at_s=self._now(), last=True)
        for sentence in explain(totals, self._deliveries, memories, kept):
            self._tell(sentence)
        return totals

    def _look(self, status: str) -> int:
        """Show the present state; returns how many events have taken effect."""
        self._server.check("by itself")
        self._application.check("by itself")
        taken = applied(self._application.database)
        try:
            self._deliveries = self._list()
        except (Unreachable, Refused):
            status = "the server does not answer"
        counts = by_endpoint(self._names, self._deliveries)
        self._watch.show(counts, status=f"{status}, {taken} applied", at_s=self._now())
        return taken

    def _list(self) -> list[DeliveryOut]:
        return list(self._client.deliveries.list(tenant=TENANT))

    def _tell(self, text: str) -> None:
        self._watch.tell(text, at_s=self._now())

    def _now(self) -> float:
        return time.monotonic() - self._began
