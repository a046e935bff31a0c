"""`manage.py surehook_release`: let a document go on although something before what it holds is missing."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser


class Command(BaseCommand):
    """A word of a person, carried out by the next worker."""

    help = "Let what is held for a document go on, up to the next gap. The next worker does it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("document")
        parser.add_argument("--by", required=True, help="Who says so; kept in the journal.")
        parser.add_argument("--reason", required=True, help="Why; kept in the journal.")
        parser.add_argument("--tenant", default="")
        parser.add_argument("--document-type", help="Where one id is a document of several types.")

    def handle(self, *args: Any, **options: Any) -> None:
        from surehook.inbox.django import inbox

        words = {name: options[name] for name in ("by", "reason", "tenant", "document_type")}
        if not inbox.release(options["document"], **words):
            raise CommandError(f"nothing is held for {options['document']}", returncode=7)
        self.stdout.write("the next worker lets it go on")
