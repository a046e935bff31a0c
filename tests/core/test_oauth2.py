"""What a token server said: the few answers that are a token, and everything else it may send."""

from __future__ import annotations

from typing import get_args

import pytest

from surehook.core import oauth2, outcome
from surehook.core.oauth2 import Issued
from surehook.ports.transport import Failure


def said(body: bytes = b"", *, status: int | None = 200, failure: str | None = None, truncated: bool = False):
    return oauth2.read(status=status, failure=failure, body=body, truncated=truncated)


@pytest.mark.parametrize(
    ("body", "life_s"),
    [
        (b'{"access_token":"abc","token_type":"Bearer","expires_in":3600}', 3570),
        (b'{"access_token":"abc","token_type":"bearer","expires_in":100}', 90),
        (b'{"access_token":"abc","token_type":"BEARER","expires_in":1}', 0.9),
        (b'{"access_token":"abc","token_type":"bearer","expires_in":59.5}', 53.55),
        (b'{"access_token":"abc","token_type":"bearer","expires_in":"3600"}', 3570),
        (b'{"access_token":"abc","token_type":"bearer"}', 270),
        (b'{"access_token":"abc","token_type":"bearer","expires_in":null}', 270),
        (b'{"access_token":"abc","token_type":"bearer","expires_in":999999999}', 86_370),
        (b' {"scope":"a","access_token":"abc","token_type":"bearer","x":{"y":[1]},"expires_in":300}\n', 270),
    ],
)
def test_a_token_is_used_for_its_life_less_a_margin(body: bytes, life_s: float) -> None:
    found = said(body)
    assert isinstance(found, Issued)
    assert (found.token, round(found.life_s, 6)) == ("abc", life_s)
    assert "abc" not in repr(found)


GARBAGE = [
    b"", b"   ", b"abc", b"null", b"[]", b"{}", b'"abc"', b"<html>", b"\xff\xfe", b"access_token=abc&token_type=bearer",
    b'{"access_token":"abc"}', b'{"token_type":"bearer"}', b'{"access_token":"abc","token_type":"mac"}',
    b'{"access_token":"abc","token_type":null}', b'{"access_token":null,"token_type":"bearer"}',
    b'{"access_token":1,"token_type":"bearer"}', b'{"access_token":"","token_type":"bearer"}',
    b'{"access_token":"a b","token_type":"bearer"}', b'{"access_token":"a\\r\\nx: y","token_type":"bearer"}',
    b'{"access_token":"a\\u0000","token_type":"bearer"}', b'{"access_token":"a\\n","token_type":"bearer"}',
    '{"access_token":"ä","token_type":"bearer"}'.encode(), b'{"access_token":"\\ud800","token_type":"bearer"}',
    b'{"access_token":"' + b"a" * 4097 + b'","token_type":"bearer"}',
    b'{"access_token":"a","access_token":"b","token_type":"bearer"}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":0}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":-5}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":"soon"}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":""}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":true}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":[1]}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":NaN}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":1e999}',
    b'{"access_token":"abc","token_type":"bearer","expires_in":' + b"9" * 400 + b"}",
    b'{"access_token":"abc","token_type":"bearer"} trailing', b'{"access_token":"abc","token_type":"bearer"',
    b"[" * 10_000, b'{"access_token":' + b'{"a":' * 3000,
]  # fmt: skip


@pytest.mark.parametrize("body", GARBAGE, ids=lambda body: repr(body)[:60])
def test_anything_else_is_no_token(body: bytes) -> None:
    assert said(body) == "token_unusable"


def test_a_token_in_an_answer_that_was_cut_is_no_token() -> None:
    assert said(b'{"access_token":"abc","token_type":"bearer"}', truncated=True) == "token_unusable"


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (201, "token_unusable"), (204, "token_unusable"), (301, "token_redirected"), (307, "token_redirected"),
        (304, "token_redirected"), (400, "token_refused"), (401, "token_refused"), (403, "token_refused"),
        (404, "token_refused"), (429, "token_failed"), (500, "token_failed"), (503, "token_failed"),
    ],
)  # fmt: skip
def test_a_status_that_is_not_200_says_why_there_is_no_token(status: int, name: str) -> None:
    assert said(b'{"access_token":"abc","token_type":"bearer"}', status=status) == name


def test_every_failure_of_a_fetch_has_a_name_of_its_own_or_is_ours() -> None:
    for failure in get_args(Failure):
        name = said(status=None, failure=failure)
        assert name in get_args(Failure)
        assert name.startswith("token_") or name in outcome.OURS
    for failure, name in {
        "dns_nxdomain": "token_unreachable", "connect_refused": "token_unreachable", "tls_name": "token_unreachable",
        "eof": "token_unreachable", "reset": "token_unreachable", "timeout": "token_timeout",
        "dns_timeout": "token_timeout", "connect_timeout": "token_timeout", "tls_timeout": "token_timeout",
        "address_forbidden": "token_forbidden", "peer_mismatch": "token_forbidden", "url_forbidden": "token_forbidden",
        "not_http": "token_unusable", "bad_framing": "token_unusable", "headers_too_large": "token_unusable",
        "no_resources": "no_resources", "proxy_failure": "proxy_failure", "aborted": "aborted",
    }.items():  # fmt: skip
        assert said(status=None, failure=failure) == name


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (b'{"error":"invalid_client"}', "invalid_client"),
        (b'{"error":"<script>"}', None), (b'{"error":1}', None), (b"nothing", None), (b"", None), (b"[" * 99_999, None),
    ],
)  # fmt: skip
def test_only_a_word_of_the_standard_is_repeated(body: bytes, word: str | None) -> None:
    assert oauth2.error_word(body) == word
