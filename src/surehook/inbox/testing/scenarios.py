"""Failures between a sender and a receiver, played on a `Trial`; each returns its outcome.

The promise is the same for all: what was sent takes effect, and takes effect once. A test plays a scenario and then looks at
its own application: `assert contracts() == [("c1", "signed")]`. What handlers did outside of their transaction is what such
tests find.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from surehook.core.sources.provider import Reply
from surehook.inbox.testing.sending import Message, forgeries
from surehook.inbox.testing.trial import Trial

RETRY_S = 5.0  # the first retry of a surehook sender
LONG_S = 86_400.0  # beyond any tolerance


class Played(Struct, frozen=True, kw_only=True):
    """The outcome of a scenario.

    replies  what the sender was answered, in order, also where it did not hear it
    states   of every event in the inbox, by event id
    calls    how often handlers were called in this scenario, by event id
    effects  how often what they did was committed, by event id: once each, if all is well
    """

    replies: tuple[Reply, ...]
    states: dict[str, str]
    calls: dict[str, int]
    effects: dict[str, int]


def crash_after_persist(inbox: Trial, *messages: Message) -> Played:
    """The receiver stores, and dies before it answers or processes; its senders hear nothing and send again."""
    play = _Play(inbox)
    for message in messages:
        play.send(message)
    inbox.restart()
    inbox.clock.passes(RETRY_S)
    for message in messages:
        play.send(play.again(message, retry=1))
    inbox.work()
    return play.played()


def crash_before_commit(inbox: Trial, *messages: Message) -> Played:
    """Handlers have done their work, and the process dies before the commit. Another one takes it up when the lease is over.

    What a handler did outside of `tx` was done then, and is done again.
    """
    play = _Play(inbox)
    for message in messages:
        play.send(message)
    inbox.die_before_commit()
    inbox.clock.passes(inbox.lease_s + 1)
    inbox.work()
    return play.played()


def timeout_after_commit(inbox: Trial, *messages: Message) -> Played:
    """Everything is done, but the sender had given up waiting for the answer: it sends twice more."""
    play = _Play(inbox)
    for message in messages:
        play.send(message)
    inbox.work()
    for retry in (1, 2):
        inbox.clock.passes(RETRY_S)
        for message in messages:
            play.send(play.again(message, retry=retry))
        inbox.work()
    return play.played()


def out_of_order(inbox: Trial, *messages: Message, order: Sequence[int] | None = None) -> Played:
    """Messages arrive in another order than they were given in: backwards, or in that of these places (0 is the first).

    Each is processed before the next arrives. Raises ValueError for an order that is none of these messages.
    """
    order = list(order) if order is not None else list(reversed(range(len(messages))))
    if sorted(order) != list(range(len(messages))) or len(messages) < 2:
        raise ValueError(f"an order of {len(messages)} messages: each place once, and at least two")
    play = _Play(inbox)
    for place in order:
        play.send(messages[place])
        inbox.work()
        inbox.clock.passes(1)
    return play.played()


def tampered(inbox: Trial, *messages: Message) -> Played:
    """Send what somebody without the secret can make of messages: other bodies, other ids, other signatures, none.

    Raises AssertionError where one of them is accepted. What a source's scheme does not prove is not tried: `proven` of the
    source says what it does.
    """
    play = _Play(inbox)
    for message in messages:
        proven = inbox.inbox.receiver.sources[message.source].proven
        for name, forged in forgeries(message, proven=proven).items():
            reply = play.send(forged)
            assert reply.status >= 400, f"{message.source} accepted a message with {name}"
    inbox.work()
    return play.played()


def replayed(inbox: Trial, *messages: Message) -> Played:
    """Messages arrive and are processed; then the very same requests come at once and a day later, and in the end the
    sender itself sends the events again, signed anew.

    An old copy is refused where the time of signing is proven, and a repeat where it is not.
    """
    play = _Play(inbox)
    for message in messages:
        play.send(message)
    inbox.work()
    for wait in (0.0, LONG_S):
        inbox.clock.passes(wait)
        for message in messages:
            play.send(message)
        inbox.work()
    for message in messages:
        play.send(play.again(message, replay=True))
    inbox.work()
    return play.played()


class _Play:
    """One scenario: what was answered, and what was counted since it began."""

    def __init__(self, inbox: Trial) -> None:
        self._inbox = inbox
        self._calls, self._effects = inbox.calls.copy(), inbox.effects.copy()
        self._replies: list[Reply] = []

    def send(self, message: Message) -> Reply:
        self._replies.append(self._inbox.send(message))
        return self._replies[-1]

    def again(self, message: Message, *, retry: int = 0, replay: bool = False) -> Message:
        return message.again(at=self._inbox.clock.at_ms / 1000, retry=retry, replay=replay)

    def played(self) -> Played:
        return Played(
            replies=tuple(self._replies),
            states=self._inbox.states(),
            calls=dict(self._inbox.calls - self._calls),
            effects=dict(self._inbox.effects - self._effects),
        )
