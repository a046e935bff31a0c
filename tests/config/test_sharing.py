"""Which settings of roles and processes go together, and what they make of an engine."""

from __future__ import annotations

import pytest

from surehook.config import Settings
from surehook.config.sharing import check_sharing
from surehook.core.errors import SettingsError
from surehook.core.model import FIRST, RETRY
from surehook.delivery.settings import EngineSettings

SHARED = "postgresql://somebody:secret@127.0.0.1:1/book"


@pytest.mark.parametrize(
    ("flags", "lanes", "accepts"),
    [
        ({}, (FIRST, RETRY), True),
        ({"role": "api"}, (), True),
        ({"role": "console"}, (), False),
        ({"role": "worker"}, (FIRST, RETRY), False),
        ({"role": "worker", "lane": "first"}, (FIRST,), False),
        ({"role": "worker", "lane": "retry"}, (RETRY,), False),
    ],
)
def test_a_role_says_what_is_taken_and_which_lanes_are_sent(flags, lanes, accepts) -> None:  # type: ignore[no-untyped-def]
    settings = Settings.load(env={"SUREHOOK_DATABASE_URL": SHARED}, flags=flags)
    check_sharing(settings)
    made = EngineSettings.of(settings)
    assert (made.lanes, made.accepts) == (lanes, accepts)
    assert made.beat_s == 0.3


@pytest.mark.parametrize(
    ("flags", "key"),
    [({"role": "api"}, "role"), ({"role": "worker"}, "role"), ({"processes": 2}, "processes")],
)
def test_sqlite_serves_one_process_that_does_everything(flags: dict[str, object], key: str) -> None:
    with pytest.raises(SettingsError) as caught:
        check_sharing(Settings.load(env={}, flags=flags))
    assert caught.value.key == key
    assert "SQLite" in caught.value.detail
    assert "SUREHOOK_DATABASE_URL=postgresql://" in str(caught.value.hint)


def test_only_a_worker_has_one_lane() -> None:
    settings = Settings.load(env={"SUREHOOK_DATABASE_URL": SHARED}, flags={"lane": "first"})
    with pytest.raises(SettingsError) as caught:
        check_sharing(settings)
    assert caught.value.key == "lane"


def test_a_databases_password_is_shown_nowhere() -> None:
    settings = Settings.load(env={"SUREHOOK_DATABASE_URL": SHARED})
    assert settings.shown("database_url") == "postgresql://somebody:***@127.0.0.1:1/book"
    assert "secret" not in repr(settings)
