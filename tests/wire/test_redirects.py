"""Redirects: which are followed, where to, what goes along, and what stops them."""

from __future__ import annotations

import asyncio

import pytest

from tests.wire.network import OK, Network
from tests.wire.posting import BODY, client, post

A, B, C, PRIVATE = "8.8.8.8", "1.1.1.1", "9.9.9.9", "10.0.0.1"
NAMES = {
    "a.company.com": (A,),
    "b.company.com": (B,),
    "c.company.com": (C,),
    "private.company.com": (PRIVATE,),
}
OURS = b"content-type: application/json\r\nwebhook-id: evt_1\r\nwebhook-signature: v1,x\r\nx-yousign-retry-count: 0\r\n"
THEIRS = b"Authorization: Bearer secret\r\nX-Api-Key: secret\r\ncookie: a=b\r\n"


def hop(location: bytes | None, status: int = 307) -> bytes:
    line = b"" if location is None else b"location: %b\r\n" % location
    return b"HTTP/1.1 %d Moved\r\n%bcontent-length: 0\r\n\r\n" % (status, line)


def follow(*answers, url="https://a.company.com/in/hook?x=1", **request):
    """One attempt; `answers` are what A, B and C say."""
    network = Network()
    network.answers = dict(zip((A, B, C), answers, strict=False))

    async def case():
        wire = client(names=NAMES, dialer=network, allow_networks=())
        answer = await post(wire, url, **{"redirects": 2, "headers": OURS, "private": THEIRS} | request)
        await wire.close()
        return answer

    return asyncio.run(case()), network


@pytest.mark.parametrize("status", [307, 308])
def test_a_redirect_that_keeps_the_method_is_followed_and_counted(status):
    answer, network = follow(hop(b"https://b.company.com/new", status), OK)
    assert (answer.status, answer.failure, answer.redirected, answer.address) == (200, None, 1, B)
    _, (_, second) = network.heard
    assert second.startswith(b"POST /new HTTP/1.1\r\nhost: b.company.com\r\n") and second.endswith(BODY)


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 305, 306])
def test_strictly_no_other_status_is_followed(status):
    answer, network = follow(hop(b"https://b.company.com/", status), OK)
    assert (answer.status, answer.failure, answer.redirected, len(network.dialed)) == (status, None, 0, 1)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_the_yousign_style_follows_with_the_same_method_and_body(status):
    answer, network = follow(hop(b"https://b.company.com/", status), OK, redirect_style="yousign")
    assert (answer.status, answer.redirected) == (200, 1)
    assert network.heard[1][1].startswith(b"POST / ") and network.heard[1][1].endswith(BODY)


@pytest.mark.parametrize(
    ("status", "location"), [(300, b"https://b.company.com/"), (304, None), (302, None), (307, None)]
)
def test_in_the_yousign_style_what_cannot_be_followed_stays_as_it_is(status, location):
    answer, network = follow(hop(location, status), OK, redirect_style="yousign")
    assert (answer.status, answer.failure, len(network.dialed)) == (status, None, 1)


def test_nothing_is_followed_where_the_request_allows_none():
    answer, network = follow(hop(b"https://b.company.com/"), OK, redirects=0)
    assert (answer.status, answer.failure, len(network.dialed)) == (307, None, 1)


@pytest.mark.parametrize("style", ["strict", "yousign"])
def test_one_redirect_too_many_is_never_called(style):
    answer, network = follow(
        hop(b"https://b.company.com/"),
        hop(b"https://c.company.com/"),
        hop(b"https://a.company.com/"),
        redirect_style=style,
    )
    assert (answer.status, answer.failure, answer.redirected) == (307, "redirect_limit", 2)
    assert [found for found, _ in network.dialed] == [A, B, C]


def test_a_loop_ends_at_the_limit():
    answer, network = follow(hop(b"https://a.company.com/in/hook?x=1"))
    assert (answer.failure, len(network.heard)) == ("redirect_limit", 3)


@pytest.mark.parametrize("location", [b"https://10.0.0.1/", b"https://127.0.0.1/", b"http://169.254.169.254/latest", b"https://[::1]/",
                                      b"https://private.company.com/"])  # fmt: skip
def test_a_redirect_to_a_forbidden_address_is_not_dialled(location):
    answer, network = follow(hop(location))
    assert answer.failure == "address_forbidden"
    assert [found for found, _ in network.dialed] == [A]


@pytest.mark.parametrize(
    "location",
    [b"http://b.company.com/", b"file:///etc/passwd", b"gopher://b.company.com/", b"data:text/plain,x", b"javascript:1",
     b"https://user:pw@b.company.com/", b"https://b.company.com/#x", b"//b.company.com/", b"", b"\\\\b.company.com", b"/\\b",
     b"https://b.company.com:22/", b"https://0x7f.1/", b"https://localhost/", b"https://b.company.com/a b", b"https:/b.company.com/",
     b"https://b\xe9.company.com/", b"/caf\xe9", b"#x", b"https://metadata.google.internal/", b"https://" + b"a" * 3000 + b".com/"],
)  # fmt: skip
def test_an_unclear_or_weaker_redirect_is_not_followed(location):
    answer, network = follow(hop(location))
    assert (answer.status, answer.failure) == (307, "redirect_forbidden")
    assert [found for found, _ in network.dialed] == [A]


def test_two_locations_are_unclear():
    answer, _ = follow(b"HTTP/1.1 307 T\r\nlocation: /x\r\nlocation: /y\r\ncontent-length: 0\r\n\r\n")
    assert answer.failure == "redirect_forbidden"


@pytest.mark.parametrize(
    ("location", "path"),
    [(b"/x", b"/x"), (b"/x?y", b"/x?y"), (b"?y=2", b"/in/hook?y=2"), (b"other", b"/in/other"), (b"./other", b"/in/other"),
     (b"../up", b"/up"), (b"../../../up", b"/up"), (b"/a/./b/../c", b"/a/c"), (b"sub/", b"/in/sub/"), (b"..", b"/"), (b".", b"/in/"),
     (b"a:b", None), (b"./a:b", b"/in/a:b")],
)  # fmt: skip
def test_a_relative_redirect_stays_on_its_host(location, path):
    network = Network()
    network.answers[A] = lambda request: OK if len(network.heard) > 1 else hop(location)

    async def case():
        wire = client(names=NAMES, dialer=network, allow_networks=())
        answer = await post(
            wire, "https://a.company.com/in/hook?x=1", redirects=1, headers=OURS, private=THEIRS
        )
        await wire.close()
        return answer

    answer = asyncio.run(case())
    if path is None:
        assert answer.failure == "redirect_forbidden"
        return
    assert (answer.status, len(network.dialed)) == (200, 1), "the connection is used again"
    assert network.heard[1][1].startswith(b"POST %b HTTP/1.1\r\n" % path)
    assert THEIRS in network.heard[1][1], "the same host may see its own credentials"


def test_credentials_stay_behind_and_the_signature_goes_along():
    for where in (b"https://b.company.com/", b"https://a.company.com:8443/"):
        _, network = follow(hop(where), OK)
        second = network.heard[1][1] if len(network.heard) > 1 else b""
        assert b"secret" not in second and b"cookie" not in second.lower()
        assert OURS in second
    _, network = follow(hop(b"https://b.company.com/"), hop(b"https://a.company.com/"))
    assert b"secret" not in network.heard[2][1], "what was dropped does not come back"


def test_http_may_become_https():
    answer, network = follow(hop(b"https://b.company.com/"), OK, url="http://a.company.com/")
    assert (answer.status, network.dialed) == (200, [(A, 80), (B, 443)])


def test_all_hops_share_one_deadline():
    answer, _ = follow(hop(b"https://b.company.com/"), lambda request: b"", timeout_s=0.1)
    assert (answer.failure, answer.unknown, answer.redirected) == ("timeout", True, 1)
    assert 100_000 <= answer.total_us < 1_000_000


def test_the_body_of_a_followed_redirect_is_not_waited_for():
    answer, _ = follow(
        b"HTTP/1.1 307 T\r\nlocation: https://b.company.com/\r\ncontent-length: 99\r\n\r\n", OK
    )
    assert (answer.status, answer.redirected) == (200, 1) and answer.total_us < 1_000_000


def test_refresh_is_ignored():
    answer, network = follow(OK.replace(b"\r\n\r\n", b"\r\nrefresh: 0; url=https://b.company.com/\r\n\r\n"))
    assert (answer.status, len(network.dialed)) == (200, 1)
