"""`manage.py surehook_work`: process what is in the inbox."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

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
        from surehook.inbox.running import until_stopped

        if options["once"]:
            inbox.move()
            self.stdout.write(f"{inbox.work()} batches")
            return
        workers = options["workers"]
        if not 1 <= workers <= WORKERS:
            raise CommandError(f"--workers: 1 to {WORKERS}, and not {workers}")
        told = f"{workers} worker{'s' if workers > 1 else ''}, until SIGTERM or Ctrl-C"
        if not until_stopped(inbox, workers, lambda: self.stdout.write(told)):
            raise CommandError("too many handlers hang: start this process anew")
