"""`manage.py surehook_release`: let a document go on although something before what it holds is missing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from surehook.inbox.django.management.command_errors import NOT_FOUND, NOT_MET, told
from surehook.inbox.django.management.document_command import DocumentCommand


class Command(DocumentCommand):
    """An operator's command, carried out by the next worker."""

    help = "Let what is held for a document go on, up to the next gap. The next worker does it."

    def handle(self, *args: object, **options: Any) -> None:
        from surehook.inbox.django import inbox

        document, where = options["document"], {name: options[name] for name in ("document_type", "tenant")}
        with told():
            is_held = inbox.release(**self.given(options))
            is_known = is_held or bool(inbox.explain(document, **where, limit=1))
        if not is_known:
            raise CommandError(f"the inbox knows no document {document!r}", returncode=NOT_FOUND)
        if not is_held:
            raise CommandError(f"nothing is held for {document}", returncode=NOT_MET)
        self.stdout.write("the next worker lets it go on")
