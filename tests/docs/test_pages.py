"""What the pages name exists: links, settings, problem codes, commands, metrics, notices, states."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from importlib.util import find_spec

import pytest
import typer

from lab.__main__ import COMMANDS
from lab.bench import command as bench
from lab.sim import command as sim
from surehook.api.codes import CODES
from surehook.api.notices import KINDS
from surehook.cli.main import app
from surehook.config import BY_NAME, FILE_VARIABLE, UNAVAILABLE, Settings
from surehook.core.delivery import TRANSITIONS
from surehook.core.model import PARKED_REASONS
from surehook.core.outbox import OutboxFigures
from surehook.core.outcome import KEY_CODES
from surehook.core.profiles import PROFILES
from surehook.core.steps import at_once
from surehook.delivery.watch import DeliveryCounts
from surehook.noticing import ENDS
from surehook.telemetry.lines import LINES_PER_MIN
from surehook.telemetry.prometheus import MetricsSnapshot, PrometheusMetrics
from tests.docs.pages import PAGES, ROOT, anchors, first_column, links, prose, section

VARIABLES = {setting.variable for setting in BY_NAME.values()} | {FILE_VARIABLE}
# Settings of Django's, see docs/django.md and docs/publishing.md.
VARIABLES |= {"SUREHOOK_INBOX", "SUREHOOK_OUTBOX"}
# The sender's.
SOURCES = "\n".join(
    path.read_text() for path in sorted((ROOT / "src").rglob("*.py")) if "inbox" not in path.parts
)


@pytest.mark.parametrize("page", PAGES)
def test_every_relative_link_leads_somewhere(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        assert target.exists(), f"{page} links to {link}"
        if anchor:
            assert anchor in anchors(target.relative_to(ROOT).as_posix()), f"{page} links to {link}"


def test_the_readme_leads_to_every_page():
    reached = {link.partition("#")[0] for link in links("README.md")}
    assert {page for page in PAGES if page != "README.md"} <= reached


@pytest.mark.parametrize("page", PAGES)
def test_every_setting_that_is_named_exists(page):
    refused = {"SUREHOOK_" + name.upper() for name in UNAVAILABLE}
    # A name that ends in an underscore is the prefix itself.
    named = set(re.findall(r"\bSUREHOOK_[A-Z0-9_]*[A-Z0-9]", PAGES[page]))
    assert named <= VARIABLES | refused


@pytest.mark.parametrize("page", PAGES)
def test_every_problem_code_that_is_named_exists(page):
    text = PAGES[page]
    # "409 `code`", "`code` (409)", "code": "…", /problems/…
    named = {code for _, code in re.findall(r"\b([45]\d\d) `([a-z_]+)`", text)}
    named |= set(re.findall(r"`([a-z_]+)` \([45]\d\d\)", text))
    named |= set(re.findall(r"/problems/([a-z_]+)", text))
    if page != "docs/delivery-contract.md":  # there the codes are the receiver's
        named |= set(re.findall(r'"code": ?"([a-z_]+)"', text))
    assert named <= set(CODES)


def test_the_codes_of_503_are_explained_to_operators():
    explained = set(re.findall(r"`([a-z_]+)`", section("docs/operations.md", "What to do when …")))
    assert {code for code, (status, _) in CODES.items() if status == 503} - {"not_ready"} <= explained


def test_the_key_codes_are_explained_to_receivers():
    for code in KEY_CODES:
        assert f"`{code}`" in PAGES["docs/delivery-contract.md"]


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_is_named_exists(page):
    root = typer.main.get_command(app)
    for line in re.findall(r"`surehook ([^`\n]+)`", prose(page)):
        words = line.split()
        command = root
        while words and hasattr(command, "get_command") and re.fullmatch(r"[a-z][a-z0-9-]*", words[0]):
            word = words.pop(0)
            command = command.get_command(typer.Context(command), word)
            assert command is not None, f"{page}: surehook {line}"
        options = {
            name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]
        }
        for word in words:
            if word.startswith("--"):
                name = word.rstrip(",.").partition("=")[0]
                assert name in options | {"--help"}, f"{page}: surehook {line}"


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_the_lab_that_is_named_exists(page):
    for line in re.findall(r"`python -m lab ([^`\n]+)`", prose(page)):
        name, *words = line.split()
        assert name in {*COMMANDS, "--help"}, f"{page}: python -m lab {line}"
        if words and name in LAB:
            LAB[name].parse_args(words)
    for name in re.findall(r"`python -m lab\.([a-z_.]+)", prose(page)):
        assert find_spec(f"lab.{name}") is not None, f"{page}: python -m lab.{name}"


NOT_OURS = {
    "--help", "--url",  # of every command; of none, as the pages say
    "--timeout", "--rounds", "--part", "--preload",  # gunicorn's; of benches that are no commands
}  # fmt: skip
LAB = {"bench": bench.parser(), "sim": sim.parser()}


def _options(command) -> set[str]:
    """Of a command and all beneath it."""
    found = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
    context = typer.Context(command)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        found |= _options(command.get_command(context, name))
    return found


def _words(parser: ArgumentParser) -> set[str]:
    """The options of a command line and of all commands beneath it."""
    found = set(parser._option_string_actions)
    for action in parser._actions:
        for one in action.choices.values() if isinstance(action.choices, dict) else ():
            found |= _words(one)
    return found


OPTIONS = _options(typer.main.get_command(app)).union(*map(_words, LAB.values()))


@pytest.mark.parametrize("page", PAGES)
def test_every_option_that_is_named_exists(page):
    spans = re.findall(r"`([^`\n]+)`", prose(page))
    named = {option for span in spans for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", span)}
    assert named <= OPTIONS | NOT_OURS


@pytest.mark.parametrize("page", PAGES)
def test_every_metric_that_is_named_exists(page):
    # The last three are commands of Django's.
    known = {
        *first_column(section("docs/operations.md", "Watch")),
        "surehook_work",
        "surehook_release",
        "surehook_grant",
    }
    named = set(re.findall(r"\bsurehook_[a-z_]+[a-z]", PAGES[page]))
    assert {name for name in named if not name.startswith(("surehook_inbox", "surehook_outbox"))} <= known


def test_every_profile_that_a_receiver_reads_of_exists():
    words = set(
        re.findall(r"`(standard|signing|yousign|insigner|webhooks_uno)`", PAGES["docs/delivery-contract.md"])
    )
    assert words <= set(PROFILES)
    for name in ("standard", "signing"):
        assert PROFILES[name].obey_verdicts
        assert PROFILES[name].terminal == (410,)
        assert PROFILES[name].honour_retry_after == 3600
    assert not any(PROFILES[name].obey_verdicts for name in PROFILES if name not in ("standard", "signing"))
    assert (PROFILES["standard"].timeouts.first, PROFILES["standard"].timeouts.retry) == (2, 15)


def _documented_labels() -> dict[str, set[str]]:
    """The labels of each metric, as the table under Watch has them."""
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*)\|", section("docs/operations.md", "Watch"), re.MULTILINE)
    return {
        name: {label for label in re.split(r",\s*", labels.strip()) if label}
        for names, labels in rows
        for name in re.findall(r"`(surehook_\w+)`", names)
    }


def _scraped_labels(text: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE"):
            name = line.split()[2]
        elif not line.startswith("#"):
            found.setdefault(name, set()).update(set(re.findall(r'(\w+)="', line)) - {"le"})
    return found


async def test_the_metrics_are_those_of_a_scrape():
    watch = DeliveryCounts()
    one, two = {"a": 1}, {("a", "b"): 1}
    empty = MetricsSnapshot(
        accepted=0, attempts=two, retries=0, finished=one, notices=one, latency=watch.latency,
        lateness=watch.lateness, in_flight=one, slots=one, depth=two, oldest_due_s=one, unserved=one, parked=one,
        memory_deliveries=0, waiting_events=0, receipts=one, calls=one, calls_begun=one, calls_refused=two,
        requests={("GET", "/", 200): 1}, request_times={("GET", "/"): watch.latency}, connections=(1, 2),
        body_bytes=(1, 2), refused=one, breakers=one, endpoints=one, upkeep_late_s=one, dead_letters=1, ledger_refused=0,
        ledger_bytes=1, ledger_free_bytes=1, ledger_floor_bytes=1, descriptors=(1, 2), resident_bytes=1,
        outbox=OutboxFigures(1, 1, 1, 1, 1.0, is_troubled=False),
        loop_lateness=watch.lateness, build=dict.fromkeys(("version", "python", "sqlite", "ledger", "role"), "1"),
    )  # fmt: skip

    async def snapshot() -> MetricsSnapshot:
        return empty

    text = at_once(await PrometheusMetrics(snapshot).rendering()).decode()
    scraped = re.findall(r"^# TYPE (\w+)", text, re.MULTILINE)
    listed = [
        name for name in first_column(section("docs/operations.md", "Watch")) if name.startswith("surehook_")
    ]
    assert sorted(listed) == sorted(scraped)
    assert _documented_labels() == _scraped_labels(text)
    one_of_several = at_once(await PrometheusMetrics(snapshot, always={"process": "1"}).rendering()).decode()
    samples = [line for line in one_of_several.splitlines() if not line.startswith("#")]
    assert len(samples) > 20 and all('process="1"' in line for line in samples)


def test_the_notices_and_log_lines_are_those_of_the_code():
    notices = first_column(section("docs/operations.md", "Notices"))
    lines = first_column(section("docs/operations.md", "Log lines"))
    assert sorted(notices) == sorted(KINDS)
    made = set(re.findall(r'(?:kind=|notice=|_notice\(\s*|KIND = )"([a-z]+\.[a-z_]+)"', SOURCES)) | {
        *ENDS,
        *ENDS.values(),
    }
    assert made | {"breaker.opened", "breaker.closed"} == set(KINDS)  # f"breaker.{change}"
    facts = set(re.findall(r'\.fact\(\s*"([a-z_.]+)"', SOURCES))
    assert set(lines) == facts


def test_the_purposes_of_upkeep_are_those_that_are_added():
    (row,) = re.findall(r"^\| `surehook_upkeep_late_seconds` .*$", PAGES["docs/operations.md"], re.MULTILINE)
    listed = row.rstrip(" |").rpartition(": ")[2].split(", ")
    assert sorted(listed) == sorted(set(re.findall(r'(?:upkeep\.add|look_after)\("([a-z]+)"', SOURCES)))


def test_the_bounds_of_callers_are_those_that_the_server_counts():
    source = ROOT / "src/surehook"
    files = [*source.glob("http_server/*.py"), *source.glob("core/http1/request_*.py")]
    text = "\n".join(path.read_text() for path in files)
    counted = re.findall(r'(?:Problem\(\s*|refused\[|refuse\([^"]*)"([a-z_]+)"', text)
    listed = first_column(section("docs/operations.md", "Limits for callers"))
    # `request_timeout` is what is answered; what is counted says whether a head or a body was late.
    assert set(counted) - {"request_timeout"} == set(listed) - {"reason", "http.refused"}


def test_the_reasons_of_parking_are_explained():
    explained = first_column(section("docs/operations.md", "What to do when …"))
    assert sorted(explained) == sorted(set(PARKED_REASONS) - {"order"})


def test_the_defaults_that_operations_names_are_the_defaults():
    text = " ".join(PAGES["docs/operations.md"].split())
    defaults = Settings()
    for written, value in (
        ("finished events, deliveries and attempts, notices | {} days", defaults.retention_days),
        ("bodies of finished events | {} days", defaults.body_retention_days),
        ("`SUREHOOK_DISK_FLOOR_MB` ({} MiB)", defaults.disk_floor_mb),
        ("`SUREHOOK_GRACE_S` ({} s)", defaults.grace_s),
        ("`SUREHOOK_HOST` ({})", defaults.host),
    ):
        assert written.format(value) in text
    assert LINES_PER_MIN == 100
    assert "Of one kind there are at most a hundred lines a minute" in text
    assert "at most a hundred of a kind in a minute" in " ".join(PAGES["CHANGELOG.md"].split())


def test_the_diagram_of_a_delivery_is_the_table():
    drawn = re.findall(r"^    (\w+) --> (\w+): (\w+)$", PAGES["docs/architecture.md"], re.MULTILINE)
    table = [(state, target, move) for state, moves in TRANSITIONS.items() for move, target in moves.items()]
    assert sorted(drawn) == sorted(table)
    assert first_column(section("docs/architecture.md", "The life of a delivery")) == list(
        dict.fromkeys(["scheduled", "sending", "retrying", "parked", *TRANSITIONS])
    )


def test_the_rooms_are_the_folders():
    source = ROOT / "src/surehook"
    listed = first_column(section("docs/architecture.md", "The rooms"))
    listed = [name for name in listed if (source / name).exists()]
    folders = {f"{path.parent.name}/" for path in source.glob("*/*.py") if path.name != "__init__.py"}
    assert folders == {name for name in listed if name.endswith("/")}
