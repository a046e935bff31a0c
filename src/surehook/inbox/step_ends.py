"""The ends of runs by what was decided about their documents: who is called for a step, and what it makes of the run."""

from __future__ import annotations

from msgspec import structs

from surehook.core.workflow.decide import Decision, Step
from surehook.inbox.backoff import for_as_long
from surehook.inbox.document_runs import Concerned, Read
from surehook.inbox.following import Following
from surehook.inbox.handlers import Handler
from surehook.inbox.result_policy import Called, ResultPolicy
from surehook.inbox.workflow import Workflow
from surehook.ports.inbox import LINE_FULL, Settlement, Transaction
from surehook.ports.inbox_runs import Run, State

# For an event that came early to a document whose line is full, or of which something is to be undone first.
LATER_MS = (1_000, 60_000)
# A rule that is a code as well: these are replayed once what was missing has come.
WAITED_TOO_LONG = "waited_too_long"
TURN_CAME = "turn_came"  # of an event that had waited, and is processed by itself now

# What a verdict that moves nothing makes of a run.
ENDS: dict[str, State] = {
    "duplicate": "ignored",
    "stale": "ignored",
    "informational": "ignored",
    "no_op": "ignored",
    "conflict": "rejected",
    "early": "held",
}


class StepEnds:
    """The ends of runs, by steps."""

    def __init__(self, policy: ResultPolicy, following: Following) -> None:
        self._policy, self._following = policy, following

    def ended(self, transaction: Transaction, workflow: Workflow, step: Step, one: Read) -> Settlement:
        """Call the handlers that hear of a step, and return the end of its run. Raises what a handler raises."""
        policy, run = self._policy, one.run
        hearing = self.hearing(workflow, step, run)
        if step.is_move or hearing:
            called: Called = policy.call(transaction, run, structs.replace(one.event, change=step), hearing)
            return policy.succeeded(run, called)
        if step.rule == LINE_FULL:
            most = workflow.table.order.again_ms
            return self.later(run, LINE_FULL, since=run.received_at, most=most, error=step.reason)
        code = step.rule if step.rule == WAITED_TOO_LONG else step.verdict
        return policy.end(run, ENDS[step.verdict], code=code, error=step.reason)

    def hearing(self, workflow: Workflow, step: Step, run: Run) -> tuple[Handler, ...]:
        """Choose the handlers that hear of a step."""
        if not step.is_move and step.verdict != "informational":
            return ()
        fitting = self._policy.handlers.fitting(run.source, run.type)
        return fitting if step.is_move else self._following.asking(workflow, run, fitting)

    def shared(self, workflow: Workflow, decision: Decision, runs: Concerned, own: Read | None) -> list[Read]:
        """List the events that had waited and for which handlers are to be called."""
        return [
            one
            for step in decision.released
            if (one := runs.of(step)) is not None
            and one is not own
            and (step.is_move or self.hearing(workflow, step, one.run))
        ]

    def alone(self, run: Run) -> tuple[Run, Settlement]:
        """Let a run be processed by itself, at once. The claim by which it came to wait was no attempt."""
        return run, self.later(run, TURN_CAME, since=None)

    def later(
        self, run: Run, code: str, *, since: int | None, most: int = LATER_MS[1], error: str | None = None
    ) -> Settlement:
        """Put a run off for as long as something has lasted, at most so many milliseconds; without `since`, not at all. Its claim
        was no attempt."""
        ended, now = self._policy.end(run, "accepted", code=code, error=error), self._policy.now()
        due_at = now if since is None else now + min(for_as_long(now - since, LATER_MS), most)
        return structs.replace(ended, due_at=due_at, attempts=max(run.attempts - 1, 0))
