"""The pytest plugin: for applications that receive, an inbox in a test's hands, signed messages, and what goes wrong; for those
that publish, clients that send nothing.

    def test_a_contract_is_signed_once(inbox, sign, crash_after_persist):
        crash_after_persist(sign("yousign", "signature_request.done", {"signature_request": {"id": "c1"}}))
        assert inbox.sql("select state from contracts") == [("signed",)]

pytest loads this module in every run of everybody who has surehook installed: nothing but pytest is imported until a fixture
is asked for. How to use it is in docs/testing.md and docs/client.md; what it gives is in `surehook.inbox.testing` and
`surehook.client.recording`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

TYPE_CHECKING = False  # `typing` has the same, and pytest has loaded it

if TYPE_CHECKING:
    from typing import Any

    from surehook.client.recording import RecordingAsyncClient, RecordingClient
    from surehook.inbox import AsyncInbox, Inbox
    from surehook.inbox.testing import Message, Trial

    Scenario = Callable[..., Any]

MARKER = "surehook_inbox"


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line(
        "markers",
        f"{MARKER}(place=None, *, sources=()): the application's inbox (`shop.hooks:inbox`, or the inbox itself), "
        "and further sources, for the fixture `inbox`",
    )


@pytest.fixture
def recording_client() -> RecordingClient:
    """A `Client` that sends nothing; `sent` has the events that a server would have taken."""
    from surehook.client.recording import RecordingClient

    return RecordingClient()


@pytest.fixture
def recording_async_client() -> RecordingAsyncClient:
    """An `AsyncClient` that sends nothing; as `recording_client`."""
    from surehook.client.recording import RecordingAsyncClient

    return RecordingAsyncClient()


@pytest.fixture
def inbox_definitions(request: pytest.FixtureRequest) -> Inbox | AsyncInbox | None:
    """The application's inbox, whose sources, handlers and workflows the fixture `inbox` has. Override it, or use the marker."""
    place = _marked(request, "place")
    if not isinstance(place, str):
        return place  # type: ignore[no-any-return]
    from surehook.inbox.running import inbox_at

    return inbox_at(place)


@pytest.fixture
def inbox_database(tmp_path: Path) -> str:
    """The URL of an empty database for the fixture `inbox`: a file of SQLite. Override it to test on another one."""
    return f"sqlite:///{tmp_path / 'surehook-inbox.db'}"


@pytest.fixture
def inbox(
    request: pytest.FixtureRequest, inbox_definitions: Inbox | AsyncInbox | None, inbox_database: str
) -> Iterator[Trial]:
    """An inbox in the test's hands (`surehook.inbox.testing.Trial`): nothing runs and no time passes by itself."""
    from surehook.inbox.testing import Trial
    from surehook.inbox.testing.sending import ready_sources

    sources = _marked(request, "sources") or ()
    if inbox_definitions is None and not sources:
        sources = ready_sources()
    with Trial(inbox_database, inbox_definitions, sources) as trial:
        yield trial


@pytest.fixture
def sign(request: pytest.FixtureRequest) -> Callable[..., Message]:
    """Makes signed messages: `sign(source, type, data)` for the sources of the fixture `inbox`, by its clock.

    In a test without `inbox`, `sign(provider, type, data, secret=…)`, by this machine's clock, for a client of your own:
    `client.post("/hooks/stripe", content=message.body, headers=message.headers)`.
    """
    if "inbox" in request.fixturenames:
        trial: Trial = request.getfixturevalue("inbox")
        return trial.sign
    from surehook.inbox.testing.sending import signing

    return signing()


def _scenario(name: str) -> object:
    def fixture(inbox: Trial) -> Scenario:
        from surehook.inbox.testing import scenarios

        return partial(getattr(scenarios, name), inbox)

    fixture.__name__ = name
    fixture.__doc__ = f"`surehook.inbox.testing.scenarios.{name}` on the fixture `inbox`."
    return pytest.fixture(fixture)


crash_after_persist = _scenario("crash_after_persist")
crash_before_commit = _scenario("crash_before_commit")
timeout_after_commit = _scenario("timeout_after_commit")
out_of_order = _scenario("out_of_order")
tampered = _scenario("tampered")
replayed = _scenario("replayed")


def _marked(request: pytest.FixtureRequest, name: str) -> Any:
    """Return what the nearest marker gives: its one positional argument, or a named one."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None:
        return None
    if name == "place" and marker.args:
        return marker.args[0]
    return marker.kwargs.get(name)
