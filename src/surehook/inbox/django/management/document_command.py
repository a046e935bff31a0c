"""The arguments of commands for one document."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandParser


class DocumentCommand(BaseCommand):
    """A command for one document: who gives it, and why, is kept in the journal."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("document")
        parser.add_argument("--by", required=True, help="Who says so; kept in the journal.")
        parser.add_argument("--reason", required=True, help="Why; kept in the journal.")
        parser.add_argument("--tenant", default="")
        parser.add_argument("--document-type", help="Where one id is a document of several types.")

    def given(self, options: dict[str, object]) -> dict[str, Any]:
        """The arguments, as the inbox's methods take them."""
        return {name: options[name] for name in ("document", "by", "reason", "tenant", "document_type")}
