"""What a type checker finds: one usual mistake a line. Read by it alone, and never run."""

from typing import Any

from surehook.inbox import AsyncInbox, Event, Inbox, sources

inbox = Inbox("sqlite://", [sources.named("stripe", secret="s")])
loops = AsyncInbox("sqlite://", [sources.named("stripe", secret="s")])


@inbox.on("stripe")  # mistake: a handler's parameters
def alone(event: Event) -> None: ...


@loops.on("stripe")  # mistake: a handler's parameters, in a loop
async def alone_too(event: Event) -> None: ...


@inbox.on("stripe")  # mistake: a coroutine on Inbox
async def later(event: Event, tx: Any) -> None: ...


sources.named("strype", secret="s")  # mistake: a provider
sources.named("stripe", secret="s", tolerance=60)  # mistake: an option
sources.hmac("mine", secret="s", heder="X-Signature")  # mistake: an option of hmac
inbox.events(sorce="stripe")  # mistake: a filter
inbox.events(state="deed")  # mistake: a state
inbox.replay(reason="again", tpye="invoice.paid")  # mistake: a filter of a replay
inbox.on("stripe", timeout=5)  # mistake: an option of a handler
