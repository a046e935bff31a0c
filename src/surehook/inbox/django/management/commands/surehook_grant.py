"""`manage.py surehook_grant`: a remediation token for one event of a document."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from surehook.inbox.django.management.command_errors import told
from surehook.inbox.django.management.document_command import DocumentCommand


class Command(DocumentCommand):
    """An operator's command; it holds at once."""

    help = "Let one event that carries the printed token leave a terminal state, or pass what is missing before it."

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--token", help="The token; made up if it is not given.")

    def handle(self, *args: object, **options: Any) -> None:
        from surehook.inbox.django import inbox

        with told():
            self.stdout.write(inbox.grant(token=options["token"], **self.given(options)))
