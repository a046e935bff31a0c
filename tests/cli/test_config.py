"""`surehook config show`."""

from __future__ import annotations

from surehook.config import SETTINGS
from tests.cli.conftest import Run


def test_every_setting_is_shown_with_its_origin(surehook: Run) -> None:
    ran = surehook("config", "show", "--origin", "--json", env={"SUREHOOK_PORT": "9"})
    assert list(ran.json) == [setting.name for setting in SETTINGS]
    assert ran.json["port"] == {"value": 9, "origin": "environment SUREHOOK_PORT"}
    assert ran.json["host"] == {"value": "127.0.0.1", "origin": "default"}


def test_plain_columns_without_colour_codes_reach_a_pipe(surehook: Run) -> None:
    ran = surehook("config", "show")
    assert ran.out.splitlines()[0].split() == ["SETTING", "VALUE", "UNIT", "MEANING"]
    assert "\x1b" not in ran.out


def test_the_key_is_not_printed(surehook: Run) -> None:
    key = "a-key-of-sixteen-chars"
    for args in (("--json",), (), ("--origin",)):
        ran = surehook("config", "show", *args, env={"SUREHOOK_API_KEY": key})
        assert key not in ran.out
        assert "(set, 22 characters)" in ran.out
