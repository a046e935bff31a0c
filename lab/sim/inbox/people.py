"""Those at the receiver's end: who decide, replay, deploy new secrets and schema versions."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from lab.sim.inbox.application import SOURCE, Application
from lab.sim.loop import ProcessDied
from lab.sim.node import Machine
from lab.sim.trace import Trace
from surehook.inbox import AsyncInbox
from surehook.ports.inbox import StoreError

REJECT_SHARE = 0.4  # of what waits for a word, while the storm lasts
STRICT_SHARE = 0.7  # where moves are rejected


class Clerks:
    """They ask whichever process answers, and try again another day."""

    def __init__(
        self, machines: list[Machine], chance: random.Random, trace: Trace, find: Callable[[str], None]
    ) -> None:
        self._find = find
        self._machines = machines
        self._chance = chance
        self._trace = trace

    async def replay(self, wanted: dict[str, str]) -> int:
        """Process again what fits; how many were begun."""
        begun = await self._ask(lambda inbox: inbox.replay(reason="a clerk", **wanted))
        if begun:
            self._trace.note("inbox-replay", f"{begun} {wanted}")
        return begun or 0

    async def unpark(self) -> int:
        """Let events of schema versions that are known by now be processed."""
        return await self._ask(lambda inbox: inbox.unpark(SOURCE)) or 0

    async def release(self, document: str) -> bool:
        """Let a document go on; whether anything was held for it."""
        words = {"by": "a clerk", "reason": "a world"}
        done = await self._ask(lambda inbox: inbox.release(document, **words))
        if done:
            self._trace.note("inbox-release", document)
        return bool(done)

    async def decide(self, reject_share: float) -> int:
        """Say the last word on everything that waits for it; how many heard it."""
        waiting = await self._ask(lambda inbox: inbox.events(state="processed")) or []
        heard = 0
        for one in waiting:
            reject = self._chance.random() < reject_share
            heard += bool(await self._say(one.ref, reject=reject))
        return heard

    async def _say(self, ref: str, *, reject: bool) -> Any:
        self._trace.note("inbox-reject" if reject else "inbox-finalize", ref)
        if reject:
            return await self._ask(lambda inbox: inbox.reject(ref, "compliance"))
        return await self._ask(lambda inbox: inbox.finalize(ref))

    async def _ask(self, question: Any) -> Any:
        machine = self._chance.choice(self._machines)

        async def ask(application: Application) -> Any:
            inbox: AsyncInbox = application.inbox
            return await question(inbox)

        try:
            return await machine.call(ask)
        except (ProcessDied, StoreError) as error:
            self._trace.note("inbox-unheard", type(error).__name__)
            return None
        except Exception as error:
            self._find(f"a clerk's question fails: {error!r}")
            return None
