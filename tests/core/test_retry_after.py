"""Retry-After: seconds or a date; everything else is nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surehook.core import limits, retry_after

NOW = 784_111_777_000  # 1994-11-06 08:49:37 UTC, the instant of the RFC's own examples


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        (" 120\t", 120.0),
        ("1000000000", 1e9),
        ("1000000001", 1e9),
        ("9" * 5000, 1e9),
        ("007", 7.0),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60.0),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60.0),
        ("Sun Nov  6 08:50:37 1994", 60.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 0.0),
        ("Sun, 06 Nov 1993 08:49:37 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 1e9),
        ("Sunday, 06-Nov-45 08:49:37 GMT", 0.0),
        ("-1", None),
        ("+5", None),
        ("1e9", None),
        ("1.5", None),
        ("5, 10", None),
        ("5 10", None),
        ("", None),
        ("soon", None),
        ("٣", None),
        ("Sun, 31 Feb 1995 08:49:37 GMT", None),
        ("Sun, 06 Now 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 25:49:37 GMT", None),
        ("Sun, 06 Nov 0000 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:49:37 CET", None),
        ("1994-11-06T08:49:37Z", None),
    ],
)
def test_a_value_is_seconds_or_a_date_or_nothing(value, seconds):
    assert retry_after.parse(value, NOW) == seconds
    assert retry_after.parse(value.encode("utf-8"), NOW) == seconds


def test_a_leap_second_is_a_date():
    assert retry_after.parse("Sun, 06 Nov 1994 08:59:60 GMT", NOW) == 622.0


@pytest.mark.parametrize(
    ("year", "seconds"), [("26", 60.0), ("25", 0.0), ("76", 1e9), ("77", 0.0), ("99", 0.0)]
)
def test_two_digits_of_a_year_mean_at_most_fifty_years_ahead(year, seconds):
    now = 1_795_257_960_000  # 2026-11-21 10:46:00 UTC
    assert retry_after.parse(f"Saturday, 21-Nov-{year} 10:47:00 GMT", now) == seconds


def test_milliseconds_of_the_clock_count():
    assert retry_after.parse("Sun, 06 Nov 1994 08:50:37 GMT", NOW + 250) == 59.75


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (b"Retry-After: 5\r\n", 5.0),
        (b"content-type: a/b\r\nRETRY-AFTER:5\r\nx: y\r\n", 5.0),
        (b"Retry-After: 5\r\nRetry-After: 5\r\n", None),
        (b"Retry-After: 5\r\nretry-after: 9\r\n", None),
        (b"X-Retry-After: 5\r\n", None),
        (b"x: retry-after: 5\r\n", None),
        (b"Retry-After:\r\n", None),
        (b"", None),
    ],
)
def test_exactly_one_line_is_heard(lines, seconds):
    assert retry_after.from_headers(lines, NOW) == seconds


@given(st.binary(max_size=80) | st.text(max_size=80), st.integers(0, 4_102_444_800_000))
def test_any_value_is_bounded_seconds_or_nothing(value, now):
    seconds = retry_after.parse(value, now)
    assert seconds is None or 0 <= seconds <= limits.RETRY_AFTER_S
