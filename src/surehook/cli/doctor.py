"""`surehook doctor`: looks, changes nothing, and says what to do. Exit code 7 when something is wrong."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from surehook.cli.commands import command
from surehook.cli.output import Json, document, line, paint
from surehook.cli.server import Key, Url

if TYPE_CHECKING:
    from surehook.cli.doctor_checks import Finding

app = command()

COLOURS = {"ok": "green", "warning": "yellow", "wrong": "red"}


@app.command()
def doctor(
    offline: Annotated[bool, typer.Option("--no-server", help="Do not ask the server.")] = False,
    json: Json = False,
    url: Url = None,
    key: Key = None,
) -> int:
    """Look for what is wrong with this set-up. Exit code 7 if something is."""
    from surehook.cli.errors import NOT_MET, OK

    findings = examine(url, key, online=not offline)
    if json:
        document(findings)
    else:
        for finding in findings:
            _show(finding)
    return NOT_MET if any(finding.state == "wrong" for finding in findings) else OK


def examine(url: str | None, key: str | None, *, online: bool) -> list[Finding]:
    """All findings, in the order in which a person would look."""
    from urllib.parse import urlsplit

    from surehook.cli import doctor_checks as checks
    from surehook.cli.doctor_checks import Finding
    from surehook.cli.doctor_services import services
    from surehook.config import Settings
    from surehook.core.errors import SettingsError

    findings = [checks.python(), checks.sqlite()]
    try:
        settings = Settings.load(flags={"url": url, "api_key": key})
    except SettingsError as error:
        return [*findings, Finding("settings", "wrong", f"{error.key}: {error.detail}", error.hint)]
    given = len(settings.origins)
    where = f" and {settings.file}" if settings.file else ""
    findings.append(Finding("settings", "ok", f"{given} given, the rest are defaults{where}"))
    findings.append(checks.clock())
    holder = None
    if settings.is_sqlite:
        holder = checks.lock_holder(settings.database_path)
        findings += [checks.disk(settings), *checks.database(settings, holder)]
    else:
        findings += services(settings)
    asked = list(checks.server(settings)) if online else []
    # If a surehook answers at the address of these settings, it is what holds the port.
    here = urlsplit(settings.server_url)
    is_here = here.port == settings.port and here.hostname in {settings.host, "127.0.0.1", "::1", "localhost"}
    answers = is_here and any(each.what == "server" and each.state == "ok" for each in asked)
    return [*findings, checks.port(settings, holder, answers=answers), *asked]


def _show(finding: Finding) -> None:
    word = paint(finding.state.ljust(7), COLOURS[finding.state], sys.stdout)
    line(f"{word}  {finding.what.ljust(9)}  {finding.detail}")
    if finding.hint:
        line(f"         {'':9}  → {finding.hint}")
