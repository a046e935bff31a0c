"""A receiver's verdict: believed where it is plain, passed over where it is not, and never a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core.verdict import Verdict, verdict

PROBLEM = b"Content-Type: application/problem+json\r\n"


@pytest.mark.parametrize(
    ("headers", "body", "expected"),
    [
        (PROBLEM, b'{"retryable":false}', Verdict(False)),
        (PROBLEM, b'{"retryable":true,"code":"busy"}', Verdict(True, "busy")),
        (PROBLEM, b'{"retryable":false,"code":"bad_signature","title":"x","status":401}', Verdict(False, "bad_signature")),
        (b"x: y\r\ncontent-type: APPLICATION/Problem+JSON ; charset=utf-8\r\n", b'{"retryable":false}', Verdict(False)),
        (PROBLEM, b'{"retryable":false,"code":5}', Verdict(False)),
        (PROBLEM, b'{"retryable":false,"code":""}', Verdict(False)),
        (PROBLEM, b'{"retryable":false,"code":"' + b"x" * 65 + b'"}', Verdict(False)),
        (PROBLEM, b'{"retryable":"false"}', None),
        (PROBLEM, b'{"retryable":0}', None),
        (PROBLEM, b'{"code":"gone"}', None),
        (PROBLEM, b'{"retryable":false', None),
        (PROBLEM, b"[false]", None),
        (PROBLEM, b"", None),
        (PROBLEM, b"[" * 100_000, None),
        (PROBLEM, b'{"x":' * 3_000, None),
        (PROBLEM, b'{"retryable":false,"x":"' + b"x" * 20_000 + b'"}', None),
        (b"content-type: application/json\r\n", b'{"retryable":false}', None),
        (b"content-type: application/problem+json2\r\n", b'{"retryable":false}', None),
        (b"x-content-type: application/problem+json\r\n", b'{"retryable":false}', None),
        (b"", b'{"retryable":false}', None),
    ],
)  # fmt: skip
def test_only_a_plain_verdict_in_problem_json_is_believed(headers, body, expected):
    assert verdict(headers, body) == expected


@given(st.binary(max_size=200), st.sampled_from([b"", PROBLEM, b"\xff"]))
def test_no_bytes_make_it_raise(body, headers):
    assert verdict(headers, body) is None or b"retryable" in body
