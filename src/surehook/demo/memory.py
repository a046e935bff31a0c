"""What a receiver remembers of each delivery, so that nobody has to take the server's word."""

from __future__ import annotations

from msgspec import Struct

from surehook.core.verification import Verifier, VerifyError
from surehook.demo.receiver import Reply, Request


class Sight(Struct):
    """One delivery as its receiver saw it."""

    requests: int = 0
    answered: bool = False  # a 2xx went out on a connection that was still open
    repeated: int = 0  # requests that came after that


class Memory(Struct):
    """One receiver's book: deliveries by id, and requests whose signature did not hold."""

    seen: dict[str, Sight]
    unverified: int = 0

    def note(self, request: Request, verifier: Verifier | None, *, now: float) -> str | None:
        """A request came in; returns the id of its delivery."""
        delivery = request.header("webhook-delivery-id")
        if delivery is None:
            self.unverified += 1
            return None
        if verifier is not None:
            try:
                verifier.verify(request.headers, request.body, now=now)
            except VerifyError:
                self.unverified += 1
        sight = self.seen.setdefault(delivery, Sight())
        sight.requests += 1
        if sight.answered:
            sight.repeated += 1
        return delivery

    def answered(self, request: Request, reply: Reply) -> None:
        """The reply is out."""
        sight = self.seen.get(request.header("webhook-delivery-id") or "")
        if sight is not None and reply.status is not None and 200 <= reply.status < 300:
            sight.answered = True

    @property
    def requests(self) -> int:
        return sum(sight.requests for sight in self.seen.values())
