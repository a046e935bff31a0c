"""Header names and values a tenant may choose."""

import pytest

from surehook.core.errors import Problem
from surehook.core.header_names import RESERVED, check_headers, fault


@pytest.mark.parametrize(
    "headers", [{}, {"X-Key": "abc"}, {"Authorization": "Bearer a.b-c"}, {"x": ""}, {"a!#$": "b\tc d"}]
)
def test_ordinary_headers_pass(headers):
    check_headers(headers)


@pytest.mark.parametrize(
    "headers",
    [
        {"": "a"}, {"a b": "c"}, {"a:b": "c"}, {"a\r\nb": "c"}, {"a\x00": "c"}, {"é": "c"}, {"a" * 65: "c"},
        {"a": "b\r\nc: d"}, {"a": "b\n"}, {"a": "b\x00"}, {"a": " b"}, {"a": "b "}, {"a": "é"}, {"a": "b" * 1025},
        {"Host": "x"}, {"content-LENGTH": "1"}, {"Connection": "close"}, {"Proxy-Authorization": "x"},
        {"webhook-signature": "v1,x"}, {"Webhook-Anything": "x"}, {"svix-id": "x"}, {"Transfer-Encoding": "chunked"},
        {"User-Agent": "x"}, {"X-A": "1", "x-a": "2"},
    ],
)  # fmt: skip
def test_a_header_that_could_shape_the_request_is_refused(headers):
    with pytest.raises(Problem) as caught:
        check_headers(headers)
    assert caught.value.code == "invalid_header"
    assert caught.value.field.startswith("headers.")


def test_too_many_headers_are_refused():
    with pytest.raises(Problem) as caught:
        check_headers({f"x-{number}": "1" for number in range(21)})
    assert caught.value.field == "headers"


def test_reserved_names_are_lower_case_and_refused_in_any_case():
    for name in RESERVED:
        assert name == name.lower()
        assert fault(name.upper()) is not None
