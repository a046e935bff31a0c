"""A receiver's memory of each delivery, so that the server need not be believed."""

from __future__ import annotations

from msgspec import Struct

from surehook.core.verification import Verifier, VerifyError
from surehook.demo.receiver import HttpReply, HttpRequest


class Sight(Struct):
    """One delivery as its receiver saw it."""

    requests: int = 0
    answered: bool = False  # a 2xx went out on a connection that was still open
    repeated: int = 0  # requests that came after that


class ReceiverMemory(Struct):
    """One receiver's memory: deliveries by id, and the number of requests with a bad signature."""

    seen: dict[str, Sight]
    unverified: int = 0

    def note(self, request: HttpRequest, verifier: Verifier | None, *, now: float) -> str | None:
        """Note a request; returns the id of its delivery."""
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

    def answered(self, request: HttpRequest, reply: HttpReply) -> None:
        """Note that the reply was sent."""
        sight = self.seen.get(request.header("webhook-delivery-id") or "")
        if sight is not None and reply.status is not None and 200 <= reply.status < 300:
            sight.answered = True

    @property
    def requests(self) -> int:
        return sum(sight.requests for sight in self.seen.values())
