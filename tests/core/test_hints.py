"""Hints: one for every name of the closed set, and none that says more than it should."""

from __future__ import annotations

from typing import get_args

from surehook.core import hints
from surehook.ports.transport import Failure


def test_every_failure_has_a_hint_and_no_hint_lacks_its_failure():
    assert set(hints.BY_FAILURE) == set(get_args(Failure))


def test_hints_are_whole_sentences():
    for text in (*hints.BY_FAILURE.values(), *hints.BY_STATUS.values(), hints.REDIRECT):
        assert text[0].isupper() and text[-1] in ".?"


def test_a_failure_speaks_before_a_status_and_a_success_is_silent():
    assert hints.hint("redirect_limit", 302, succeeded=False) == hints.BY_FAILURE["redirect_limit"]
    assert hints.hint(None, 200, succeeded=True) is None
    assert hints.hint(None, 302, succeeded=True) is None
    assert hints.hint(None, 302, succeeded=False) == hints.REDIRECT
    assert hints.hint(None, 404, succeeded=False) == hints.BY_STATUS[404]
    assert hints.hint(None, 418, succeeded=False) == hints.CLIENT_ERROR
    assert hints.hint(None, 599, succeeded=False) == hints.SERVER_ERROR
    assert hints.hint(None, None, succeeded=False) is None
