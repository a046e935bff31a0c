"""The inbox in Django's admin: look at events and conflicts, and say words about events.

`django.contrib.admin` imports this module where it is installed; nobody else does. The pages are the inbox's own, and not
those of a `ModelAdmin`: an event and its newest run lie in two tables, ids are bytes, and a count of all rows, which Django's
lists begin with, takes as long as the table is large. They ask the inbox that the settings describe, by the same calls as
everybody else, so rows that belong together stay together.

`view_events` may look, `change_events` may act (replay, finalize, reject, release, grant), `view_conflicts` sees the list of
conflicts. Nobody adds, edits or removes. Who said what is in the admin's own log, and in the journal of documents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.admin.options import get_content_type_for_model
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

import surehook.inbox.django as app
from surehook.core import ids
from surehook.core.errors import SurehookError
from surehook.inbox.django import actions, pages
from surehook.inbox.django.models import LABEL, Conflicts, Events
from surehook.inbox.event import PREFIX

if TYPE_CHECKING:
    Base = admin.ModelAdmin[Any]
else:
    Base = admin.ModelAdmin

LIST = f"admin:{LABEL}_events_changelist"
DETAIL = f"admin:{LABEL}_events_change"


class ReadOnly(Base):
    """Pages to look at: what Django would let people write, it does not."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def _page(self, request: HttpRequest, name: str, **values: object) -> HttpResponse:
        request.current_app = self.admin_site.name
        context = {**self.admin_site.each_context(request), "opts": self.opts, **values}
        return TemplateResponse(request, f"{LABEL}/{name}.html", context)

    def _let_look(self, request: HttpRequest) -> None:
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied


@admin.register(Events)
class EventsAdmin(ReadOnly):
    """Events with their newest run."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [
            path("", view(self.changelist_view), name=f"{LABEL}_events_changelist"),
            path("<str:object_id>/change/", view(self.change_view), name=f"{LABEL}_events_change"),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        self._let_look(request)
        word = actions.Action(request.POST if request.method == "POST" else None)
        if request.method == "POST" and self._said(request, word, request.POST.getlist("ref")):
            return HttpResponseRedirect(request.get_full_path())
        look = pages.EventFilterForm(request.GET, sources=app.inbox.receiver.sources)
        found = pages.page(app.inbox, look)
        return self._page(
            request,
            "events",
            title="Events",
            look=look,
            rows=[(one, self._address(one.ref)) for one in found.rows],
            older=found.older and pages.address(request.GET, found.older),
            looked=found.looked,
            word=word,
            may_act=self.has_change_permission(request),
        )

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: object = None
    ) -> HttpResponse:
        self._let_look(request)
        ref = unquote(object_id)
        try:
            shown = pages.event(app.inbox, ids.parse(PREFIX, ref))
        except SurehookError as error:
            raise Http404(str(error)) from error
        if shown is None:
            raise Http404(f"the inbox has no event {ref}")
        word = actions.Action(
            request.POST if request.method == "POST" else None, has_document=shown.document is not None
        )
        if request.method == "POST" and self._said(request, word, [ref], shown.document):
            return HttpResponseRedirect(request.get_full_path())
        may_act = self.has_change_permission(request)
        return self._page(request, "event", title=ref, shown=shown, word=word, may_act=may_act)

    def _said(
        self,
        request: HttpRequest,
        word: actions.Action,
        refs: list[str],
        document: pages.DocumentHistory | None = None,
    ) -> bool:
        """Do what was asked; whether the page is to be loaded anew."""
        if not self.has_change_permission(request):
            raise PermissionDenied
        if not refs:
            messages.warning(request, "Choose the events first.")
            return True
        if not word.is_valid():
            return False
        try:
            done = actions.carried_out(app.inbox, word, refs[: pages.PAGE], document, by=_name(request))
        except SurehookError as error:
            messages.error(request, str(error))
            return True
        (messages.success if done.refs else messages.warning)(request, done.sentence)
        for ref in done.refs:
            self._log(request, ref, word)
        return True

    def _log(self, request: HttpRequest, ref: str, word: actions.Action) -> None:
        """A line of the admin's own log: who said it."""
        LogEntry.objects.create(
            user_id=request.user.pk,
            content_type_id=get_content_type_for_model(Events).pk,
            object_id=ref,
            object_repr=ref,
            action_flag=CHANGE,
            change_message=f"{word.cleaned_data['action']}: {word.cleaned_data['reason']}",
        )

    def _address(self, ref: str) -> str:
        return reverse(DETAIL, args=[quote(ref)], current_app=self.admin_site.name)


@admin.register(Conflicts)
class ConflictsAdmin(ReadOnly):
    """Other bodies under ids that were known, each with the way to its event."""

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        return [path("", view(self.changelist_view), name=f"{LABEL}_conflicts_changelist")]

    def changelist_view(self, request: HttpRequest, extra_context: object = None) -> HttpResponse:
        self._let_look(request)
        here = self.admin_site.name
        try:
            found = app.inbox.conflicts(limit=pages.PAGE, before=request.GET.get("before"))
        except SurehookError as error:
            raise Http404(str(error)) from error
        rows = [(one, reverse(DETAIL, args=[quote(one.ref)], current_app=here)) for one in found]
        older = f"?before={found[-1].conflict}" if len(found) == pages.PAGE else None
        return self._page(request, "conflicts", title="Conflicts", rows=rows, older=older)


def _name(request: HttpRequest) -> str:
    user: Any = request.user
    return str(user.get_username())
