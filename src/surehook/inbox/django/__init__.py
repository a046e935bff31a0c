"""The inbox in Django: in its database, in its transactions, by its migrations.

    # settings.py
    INSTALLED_APPS = [..., "surehook.inbox.django"]
    SUREHOOK_INBOX = {"sources": [sources.named("yousign", secret=[NEW, OLD])]}

    # urls.py
    from surehook.inbox.django import inbox
    urlpatterns = [path("hooks/<str:source>", inbox.view)]

    # webhooks.py of any app
    @inbox.on("yousign", "signature_request.done")
    def done(event, tx):               # inside transaction.atomic: what is saved here and the mark are one commit
        Contract.objects.filter(pk=…).update(state="signed")

It lies in `surehook.inbox` and not in a `surehook.django`, because a Django app is what has tables: who only receives wants
those of the inbox and no others.

    settings.py    SUREHOOK_INBOX             store.py       transactions that are Django's
    facade.py      Inbox, as Django wants it  view.py        the door
    models.py      the tables, to look at     operations.py  the tables, made by a migration
    admin.py       pages of Django's admin: pages.py is what they show, actions.py what can be done there

The statements are those of `surehook.inbox.sql`, on Django's own connection (`sql/borrowed.py`).
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False

if TYPE_CHECKING:
    from surehook.inbox.django.facade import Inbox as Inbox

    inbox: Inbox

_making = threading.RLock()  # while Django is set up, modules with handlers ask for the inbox


def __getattr__(name: str) -> object:
    """`Inbox`, and `inbox`: the one that the settings describe, made when it is first asked for."""
    if name not in ("Inbox", "inbox"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import django
    from django.apps import apps

    with _making:
        if not apps.ready and not apps.loading:
            django.setup()  # asked for from outside of Django: `surehook inbox work surehook.inbox.django:inbox`
    from surehook.inbox.django.facade import Inbox

    if name == "Inbox":
        return Inbox
    with _making:
        if "inbox" not in globals():
            globals()["inbox"] = Inbox.of_settings()
        return globals()["inbox"]
