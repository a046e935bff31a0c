"""`manage.py surehook_grant`: a remediation token for one event of a document."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from surehook.core.errors import SurehookError


class Command(BaseCommand):
    """A word of a person; it holds at once."""

    help = "Let one event that carries the printed token leave a terminal state, or pass what is missing before it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("document")
        parser.add_argument("--by", required=True, help="Who says so; kept in the journal.")
        parser.add_argument("--reason", required=True, help="Why; kept in the journal.")
        parser.add_argument("--token", help="The token; made up if it is not given.")
        parser.add_argument("--tenant", default="")
        parser.add_argument("--document-type", help="Where one id is a document of several types.")

    def handle(self, *args: Any, **options: Any) -> None:
        from surehook.inbox.django import inbox

        words = {name: options[name] for name in ("token", "by", "reason", "tenant", "document_type")}
        try:
            self.stdout.write(inbox.grant(options["document"], **words))
        except SurehookError as error:
            raise CommandError(str(error)) from error
