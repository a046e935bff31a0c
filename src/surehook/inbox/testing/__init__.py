"""For tests of applications that receive: an inbox in a test's hands, senders that sign, and what goes wrong in the world.

With pytest nothing has to be imported: the fixtures of `surehook.pytest_plugin` are these. Elsewhere:

    from surehook.inbox.testing import Trial, scenarios

    with Trial("sqlite:///test.db", shop.hooks.inbox) as inbox:
        message = inbox.sign("yousign", "signature_request.done", {"signature_request": {"id": "c1"}})
        scenarios.crash_after_persist(inbox, message)

    sending.py    Sender, Message: requests as a provider would send them
    trial.py      Trial: the inbox, its clock, its database, its restarts
    scenarios.py  crashes, lost answers, wrong order, forgeries, replays
"""

from surehook.inbox.testing import scenarios
from surehook.inbox.testing.scenarios import Played
from surehook.inbox.testing.sending import Message, Sender
from surehook.inbox.testing.trial import Clock, HandlerFailed, Trial

__all__ = ["Clock", "HandlerFailed", "Message", "Played", "Sender", "Trial", "scenarios"]
