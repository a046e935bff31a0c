"""`manage.py surehook_work`: process what is in the inbox."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from surehook.inbox.django.management.command_errors import told

WORKERS = 64  # at most, as `surehook inbox work` has them


class Command(BaseCommand):
    """Workers in a process of their own."""

    help = "Process what is in the inbox until SIGTERM or Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--workers", type=int, default=1, help=f"Batches at the same time, 1 to {WORKERS}."
        )
        parser.add_argument("--once", action="store_true", help="End when nothing is due.")

    def handle(self, *args: object, **options: Any) -> None:
        from surehook.inbox.django import inbox
        from surehook.inbox.django.settings import given
        from surehook.inbox.running import until_stopped

        if inbox.handles_nothing:
            raise CommandError(
                "there is no handler in the modules of apps that are imported: "
                f"SUREHOOK_INBOX['modules'] is {given().modules!r}"
            )
        if options["once"]:
            with told():
                inbox.move()
                self.stdout.write(f"{inbox.work()} batches")
            return
        workers = options["workers"]
        if not 1 <= workers <= WORKERS:
            raise CommandError(f"--workers: 1 to {WORKERS}, and not {workers}")
        begun = f"{workers} worker{'s' if workers > 1 else ''}, until SIGTERM or Ctrl-C"
        with told():
            is_asked = until_stopped(inbox, workers, lambda: self.stdout.write(begun))
        if not is_asked:
            raise CommandError("too many handlers hang: start this process anew")
