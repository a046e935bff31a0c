"""The pytest plugin, as somebody's suite uses it; docs/testing.md is such a suite."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import asyncpg
import psycopg
import pydantic_core
import pytest

from surehook import pytest_plugin
from tests.budget import every
from tests.docs.pages import ROOT, examples, first_column, section

pytest_plugins = ["pytester"]

# Pytester forgets what a suite imported first; whoever imports a part in C once more, after that, has errors of two kinds.
LOADED = (asyncpg, psycopg, pydantic_core)

PAGE = "docs/testing.md"
INI = """
[pytest]
addopts = -p no:cacheprovider
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
filterwarnings =
    error
    ignore:Using `httpx`
    ignore:Module already imported:pytest.PytestAssertRewriteWarning
"""
PLUGIN = () if entry_points(group="pytest11", name="surehook") else ("-p", "surehook.pytest_plugin")
OLD, NEW = "the old secret of yousign", "the new secret of yousign"


@pytest.fixture
def suite(pytester, monkeypatch):
    """Runs test files in this process, with the plugin and nothing of our own suite."""
    monkeypatch.syspath_prepend(pytester.path)
    pytester.makeini(INI)
    known = set(sys.modules)

    def run(**files: str) -> pytest.RunResult:
        for name, text in files.items():
            path = pytester.path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return pytester.runpytest_inprocess("-q", "--strict-markers", *PLUGIN)

    yield run
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in ("shop", "conftest") or name.startswith("test_"):
            sys.modules.pop(name)


def application(path: Path) -> str:
    names = f"DATABASE, OLD, NEW = 'sqlite:///{path / 'app.db'}', {OLD!r}, {NEW!r}\n"
    return names + examples(PAGE)["application"]


def test_the_page_is_a_suite_that_passes(suite, pytester):
    result = suite(
        shop__hooks=application(pytester.path),
        test_contracts=examples(PAGE)["tests"],
        test_orders=examples(PAGE)["orders"],
    )
    result.assert_outcomes(passed=12)
    assert not (pytester.path / "app.db").exists()  # the application's own database was not touched


@pytest.mark.slow
def test_the_page_s_client_goes_through_the_application_s_own_route(suite, pytester):
    from surehook.inbox import Inbox

    inbox = Inbox(f"sqlite:///{pytester.path / 'app.db'}")
    inbox.create_tables()
    closing = "\n\ndef test_close():\n    import asyncio\n    from shop.hooks import inbox\n    asyncio.run(inbox.close())\n"
    suite(
        shop__hooks=application(pytester.path),
        test_client=f"NEW = {NEW!r}\n" + examples(PAGE)["client"] + closing,
    ).assert_outcomes(passed=2)
    assert inbox.counts() == {"yousign": {"accepted": 1}}
    inbox.close()


def test_effects_outside_of_the_transaction_are_found(suite):
    suite(
        test_mails="""
mails = []

def test_one_mail(inbox, sign, crash_before_commit):
    inbox.on("stripe")(lambda event, tx: mails.append(event.id))
    crash_before_commit(sign("stripe", "invoice.paid"))
    assert mails == ["evt_1"]
"""
    ).assert_outcomes(failed=1)


def test_a_source_that_believes_forgeries_is_found(suite):
    suite(
        test_forgeries="""
import pytest
from surehook.inbox import sources
from surehook.inbox.testing.sending import OTHER_SECRET

@pytest.mark.surehook_inbox(sources=[sources.named("surehook", secret=["whsec_" + "QQ" * 16, OTHER_SECRET])])
def test_forged(sign, tampered):
    tampered(sign("surehook", "a.b"))
"""
    ).assert_outcomes(failed=1)


def test_a_fixture_gives_the_application_s_inbox_in_place_of_the_marker(suite):
    suite(
        conftest="""
import pytest
from surehook.inbox import Inbox, sources
shop = Inbox("sqlite:///nowhere.db", [sources.named("github", secret="a secret of the shop")])
shop.on("github", "issues.*")(lambda event, tx: event.data["n"])

@pytest.fixture
def inbox_definitions():
    yield shop
    shop.close()
""",
        test_issues="""
async def test_from_a_coroutine(inbox, sign):
    assert inbox.send(sign("github", "issues.opened", {"n": 1})).status == 200
    assert inbox.send(sign("github", "issues.opened", {"n": 1}, secret="another")).status == 401
    inbox.work()
    assert inbox.states() == {"evt_1": "finalized"}
    assert inbox.effects == {"evt_1": 1}

def test_a_new_inbox_for_each_test(inbox, sign):
    assert inbox.states() == {}
""",
    ).assert_outcomes(passed=2)


@pytest.mark.slow
def test_fixtures_of_the_same_names_take_their_place(suite):
    suite(
        conftest="import pytest\n@pytest.fixture\ndef inbox(): return 1\n@pytest.fixture\ndef sign(): return 2\n",
        test_own="def test_own(inbox, sign): assert (inbox, sign) == (1, 2)\n",
    ).assert_outcomes(passed=1)


@pytest.mark.slow
def test_an_order_that_is_none_is_refused(suite):
    suite(
        test_order="""
import pytest

@pytest.mark.parametrize("order", [[0], [0, 0], [0, 2]])
def test_order(order, sign, out_of_order):
    with pytest.raises(ValueError):
        out_of_order(sign("stripe", "a"), sign("stripe", "b"), order=order)
"""
    ).assert_outcomes(passed=3)


@pytest.mark.slow
def test_messages_out_of_order_are_heard_in_that_order(suite):
    suite(
        test_order="""
def test_order(inbox, sign, out_of_order):
    heard = []
    inbox.on("stripe")(lambda event, tx: heard.append(event.type))
    first, second, third = [sign("stripe", type) for type in "abc"]
    out_of_order(first, second, third)
    assert heard == ["c", "b", "a"]
    fourth, fifth = [sign("stripe", type) for type in "de"]
    out_of_order(first, fourth, fifth, order=[2, 0, 1])
    assert heard == ["c", "b", "a", "e", "d"]
"""
    ).assert_outcomes(passed=1)


@pytest.mark.parametrize("kind", every(2, ["Inbox", "AsyncInbox"]))
def test_the_inbox_may_lie_in_another_database(suite, database, kind):
    suite(
        conftest=f"""
import pytest
from surehook.inbox import {kind}, sources

@pytest.fixture
def inbox_database():
    return {database!r}

@pytest.fixture
def inbox_definitions():
    return {kind}("sqlite://", [sources.named("github", secret="a secret of the shop")])
""",
        test_elsewhere="""
def test_elsewhere(inbox, sign, crash_before_commit):
    inbox.on("github")(lambda event, tx: None)
    played = crash_before_commit(sign("github", "push", {"n": 1}))
    assert (played.calls, played.effects) == ({"evt_1": 2}, {"evt_1": 1})
    assert "PostgreSQL" in inbox.sql("select version()")[0][0]
""",
    ).assert_outcomes(passed=1)


def test_loading_the_plugin_imports_nothing_but_pytest():
    code = (
        "import pytest, sys; before = set(sys.modules); import surehook.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["surehook", "surehook.pytest_plugin"]


def test_the_page_lists_the_fixtures():
    made = {
        name
        for name, value in vars(pytest_plugin).items()
        if type(value).__name__ == "FixtureFunctionDefinition"
    }
    assert len(made) == 12
    of_publishers = {"recording_client", "recording_async_client"}
    assert set(first_column(section(PAGE, "The fixtures"))) == made - of_publishers
    assert all(f"`{name}`" in section("docs/client.md", "In your tests") for name in of_publishers)


def test_pytest_finds_it_by_its_entry_point():
    assert 'surehook = "surehook.pytest_plugin"' in (ROOT / "pyproject.toml").read_text()


def test_an_application_that_publishes_is_given_a_client_that_sends_nothing(suite):
    suite(
        test_publishing="""
import asyncio

def test_blocking(recording_client):
    recording_client.send("a.b", 1, tenant="t")
    assert [one.type for one in recording_client.sent] == ["a.b"]

def test_awaiting(recording_async_client):
    asyncio.run(recording_async_client.send("a.b", 1, tenant="t"))
    assert [one.type for one in recording_async_client.sent] == ["a.b"]
"""
    ).assert_outcomes(passed=2)
