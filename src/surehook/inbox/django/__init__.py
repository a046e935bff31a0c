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

import os
import threading

from surehook.core.errors import SettingsError, SurehookError

TYPE_CHECKING = False

if TYPE_CHECKING:
    from surehook.inbox.django.facade import Inbox as Inbox

    inbox: Inbox

_making = threading.RLock()  # while Django is set up, modules with handlers ask for the inbox


def __getattr__(name: str) -> object:
    """`Inbox`, and `inbox`: the one that the settings describe, made when it is first asked for."""
    if name not in ("Inbox", "inbox"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from django.apps import apps
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "django":
            raise
        raise ModuleNotFoundError(
            f"{__name__} needs the package django: pip install 'surehook[django]'", name=error.name
        ) from error

    with _making:
        if not apps.ready and not apps.loading:
            _begin()
    from surehook.inbox.django.facade import Inbox

    if name == "Inbox":
        return Inbox
    with _making:
        if "inbox" not in globals():
            globals()["inbox"] = Inbox.of_settings()
        return globals()["inbox"]


def _begin() -> None:
    """Set Django up, as whoever asks from outside of it has not: `surehook inbox work surehook.inbox.django:inbox`. Raises
    SettingsError."""
    import django
    from django.conf import ENVIRONMENT_VARIABLE, settings

    module = os.environ.get(ENVIRONMENT_VARIABLE)
    if not module and not settings.configured:
        raise SettingsError(
            ENVIRONMENT_VARIABLE,
            "it is not set, and Django has no settings without it",
            hint="set it to the module that manage.py names, such as shop.settings",
        )
    try:
        django.setup()
    except SurehookError:
        raise
    except Exception as error:  # whatever an application's settings and apps raise while they are loaded
        raise SettingsError(
            ENVIRONMENT_VARIABLE,
            f"Django cannot begin with {module}: {type(error).__name__}: {error}",
            hint="run it in the folder of manage.py, with the application's environment; `surehook --traceback …` shows where",
        ) from error
