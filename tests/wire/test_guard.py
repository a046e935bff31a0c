"""The guard where it counts: no dial ever goes to an address it refuses. Counted at the dial seam."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path

import pytest

from surehook.core import address
from surehook.core.errors import Problem, SettingsError
from surehook.ports.resolver import Resolved
from tests.wire.network import OK, Network
from tests.wire.posting import client, post

PUBLIC, OTHER, SIX = "8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"
URL = "https://hooks.company.com/in"
NAME = "hooks.company.com"
ADDRESSES = [
    line.split("\t")[:2]
    for line in (Path(__file__).parent.parent / "core" / "ssrf_addresses.tsv").read_text().splitlines()
    if line[0] != "#"
]


def attempt(names, *, url=URL, network=None, **settings):
    """One attempt through a network in memory: the answer and the network."""
    network = network or Network()
    request = {
        key: settings.pop(key)
        for key in ("redirects", "redirect_style", "timeout_s", "connect_timeout_s")
        if key in settings
    }

    async def case():
        wire = client(names=names, dialer=network, **{"allow_networks": (), **settings})
        answer = await post(wire, url, **request)
        await wire.close()
        return answer

    return asyncio.run(case()), network


def refuses(url, names=None, tenant="acme", **settings):
    """The code of the refusal at registration, or None."""

    async def case():
        wire = client(names=names or {}, dialer=Network(), **{"allow_networks": (), **settings})
        try:
            await wire.check(url, tenant=tenant)
        except Problem as problem:
            return problem.code
        finally:
            await wire.close()
        return None

    return asyncio.run(case())


@pytest.mark.parametrize(("verdict", "text"), ADDRESSES, ids=[row[1] for row in ADDRESSES])
def test_every_address_gets_its_verdict_as_literal_as_answer_beside_a_public_one_and_as_redirect(
    verdict, text
):
    literal = f"http://[{text}]/" if ":" in text else f"http://{text}/"
    hop = f"HTTP/1.1 307 T\r\nlocation: {literal}\r\ncontent-length: 0\r\n\r\n".encode()
    named = b"HTTP/1.1 307 T\r\nlocation: https://two.company.com/\r\ncontent-length: 0\r\n\r\n"
    for names, url, start in (
        ({}, literal, b""),
        ({NAME: (text,)}, URL, b""),
        ({NAME: (PUBLIC, text)}, URL, b""),
        ({NAME: (text, PUBLIC)}, URL, b""),
        ({NAME: ("9.9.9.9",)}, URL.replace("https", "http"), hop),
        ({NAME: ("9.9.9.9",), "two.company.com": (text,)}, URL, named),
    ):
        network = Network()
        if start:
            network.answers["9.9.9.9"] = start
        answer, _ = attempt(names, url=url, network=network, redirects=2)
        dialed = {found for found, _ in network.dialed} - {"9.9.9.9"}
        if verdict == "refuse":
            assert (answer.failure, dialed) == ("address_forbidden", set()), (url, names)
            assert answer.status == (307 if b"http://" in start else None)
        else:
            assert answer.status == 200 and dialed <= {address.canonical(text), PUBLIC}
    assert (
        refuses(literal)
        == refuses(URL, {NAME: (text,)})
        == ("address_forbidden" if verdict == "refuse" else None)
    )


def test_an_answer_that_changes_sides_never_leads_to_a_private_dial():
    async def case():
        network = Network()
        wire = client(
            names={NAME: [(PUBLIC,), ("127.0.0.1",), (OTHER, "10.0.0.1"), (OTHER,)]},
            dialer=network,
            allow_networks=(),
        )
        answers = [await post(wire, URL) for _ in range(1_000)]
        await wire.close()
        return answers, network

    answers, network = asyncio.run(case())
    assert {found for found, _ in network.dialed} == {PUBLIC, OTHER}
    assert [answer.failure for answer in answers] == [
        None,
        "address_forbidden",
        "address_forbidden",
        None,
    ] * 250
    assert all(found in (PUBLIC, OTHER) for found, _ in network.heard)


def test_a_connection_is_not_used_again_once_its_name_leads_elsewhere():
    async def case():
        network = Network()
        wire = client(names={NAME: (PUBLIC,)}, dialer=network, allow_networks=())
        first, again = await post(wire, URL), await post(wire, URL)
        assert (len(network.dialed), again.connect_us) == (1, None)
        wire._resolver.answers[NAME] = ("10.0.0.1",)
        wire._resolver._kept.clear()
        forbidden = await post(wire, URL)
        wire._resolver.answers[NAME] = (OTHER,)
        wire._resolver._kept.clear()
        moved = await post(wire, URL)
        wire._resolver.answers[NAME] = ("10.0.0.1",)
        wire._resolver._kept[NAME] = Resolved(("10.0.0.1",))  # a newer answer, already in memory
        assert (await post(wire, URL)).failure == "address_forbidden"
        assert (first.address, forbidden.failure, forbidden.address, moved.address) == (
            PUBLIC,
            "address_forbidden",
            None,
            OTHER,
        )
        await wire.close()

    asyncio.run(case())


@pytest.mark.parametrize(
    ("found", "failure"),
    [
        ("dns_nxdomain", "dns_nxdomain"),
        ("dns_failure", "dns_failure"),
        ("dns_timeout", "dns_timeout"),
        ((), "dns_failure"),
    ],
)
def test_a_name_that_does_not_resolve_says_why_and_passes_registration(found, failure):
    answer, network = attempt({NAME: found})
    assert (answer.failure, answer.unknown, network.dialed) == (failure, False, [])
    assert refuses(URL, {NAME: found}) is None


def test_a_thousand_addresses_are_all_judged_and_sixteen_dialled():
    many = tuple(f"9.9.{n // 250}.{n % 250 + 1}" for n in range(1_000))
    network = Network()
    network.answers = {found: OSError(errno.ECONNREFUSED, "no") for found in many}
    answer, _ = attempt({NAME: many}, network=network)
    assert (answer.failure, len(network.dialed)) == ("connect_refused", 16)
    answer, network = attempt({NAME: (*many, "10.0.0.1")})
    assert (answer.failure, network.dialed) == ("address_forbidden", [])


def test_the_next_address_is_tried_when_one_is_dead_and_families_take_turns():
    network = Network()
    network.answers = {PUBLIC: OSError(errno.ECONNREFUSED, "no"), SIX: OSError(errno.ENETUNREACH, "no")}
    answer, _ = attempt({NAME: (PUBLIC, OTHER, SIX)}, network=network)
    assert (answer.status, answer.address) == (200, OTHER)
    assert [found for found, _ in network.dialed] == [PUBLIC, SIX, OTHER]


def test_an_address_that_never_answers_does_not_stop_the_next_one():
    async def case():
        network = Network()
        network.answers = {PUBLIC: asyncio.Event()}
        wire = client(names={NAME: (PUBLIC, OTHER)}, dialer=network, allow_networks=())
        answer = await post(wire, URL)
        assert (answer.address, network.dialed) == (OTHER, [(PUBLIC, 443), (OTHER, 443)])
        await wire.close()

    asyncio.run(case())


def test_an_ipv6_host_without_a_route_is_unreachable():
    network = Network()
    network.answers = {SIX: OSError(errno.EADDRNOTAVAIL, "no")}
    assert attempt({NAME: (SIX,)}, network=network)[0].failure == "connect_unreachable"


@pytest.mark.parametrize(
    ("number", "failure"),
    [(errno.ECONNREFUSED, "connect_refused"), (errno.EHOSTUNREACH, "connect_unreachable"), (errno.ETIMEDOUT, "connect_timeout"),
     (errno.ECONNRESET, "connect_reset"), (errno.EMFILE, "no_resources"), (errno.ENOBUFS, "no_resources"),
     (errno.EADDRNOTAVAIL, "no_resources"), (errno.EACCES, "connect_unreachable")],
)  # fmt: skip
def test_a_failed_dial_has_its_name(number, failure):
    network = Network()
    network.answers = {PUBLIC: OSError(number, "no")}
    assert attempt({NAME: (PUBLIC,)}, network=network)[0].failure == failure


def test_a_peer_at_another_address_hears_nothing():
    network = Network()
    for network.peer in (("10.0.0.1", 443), (PUBLIC, 444), ("::ffff:10.0.0.1", 443, 0, 0)):
        answer, _ = attempt({NAME: (PUBLIC,)}, network=network)
        assert (answer.failure, answer.unknown, network.heard, network.secured) == (
            "peer_mismatch",
            False,
            [],
            [],
        )
    network.peer = ("::ffff:8.8.8.8", 443)
    assert attempt({NAME: (PUBLIC,)}, network=network)[0].status == 200


def test_the_name_is_secured_and_the_address_dialled():
    _, network = attempt({NAME: (PUBLIC,)})
    assert (network.dialed, network.secured) == ([(PUBLIC, 443)], [NAME])


def test_a_grant_holds_for_its_tenant_alone():
    async def case():
        network = Network()
        wire = client(
            names={NAME: ("10.1.2.3",)},
            dialer=network,
            allow_networks=(),
            tenant_networks={"acme": ("10.1.0.0/16",)},
        )
        mine = await post(wire, URL, target=wire.target(URL, tenant="acme"))
        other = await post(wire, URL, target=wire.target(URL, tenant="other"))
        assert (mine.status, other.failure, len(network.dialed)) == (200, "address_forbidden", 1)
        await wire.close()

    asyncio.run(case())


def test_a_stored_url_that_todays_rules_refuse_is_answered_not_raised():
    assert attempt({}, url="http://10.0.0.1/")[0].failure == "address_forbidden"
    assert attempt({}, url="http://localhost/")[0].failure == "url_forbidden"
    assert attempt({}, url="http://example.com/", allow_http=False)[0].failure == "url_forbidden"


def test_a_mapped_answer_is_dialled_as_the_address_inside():
    answer, network = attempt({NAME: ("::ffff:8.8.8.8",)})
    assert (answer.address, network.dialed) == (PUBLIC, [(PUBLIC, 443)])


def test_an_operators_nat64_prefix_and_denials_hold_in_attempts():
    assert (
        attempt({NAME: ("2001:67c::a00:1",)}, nat64_prefixes=("2001:67c::/96",))[0].failure
        == "address_forbidden"
    )
    assert attempt({NAME: ("2001:67c::808:808",)}, nat64_prefixes=("2001:67c::/96",))[0].status == 200
    assert attempt({NAME: (PUBLIC,)}, deny_networks=("8.8.8.0/24",))[0].failure == "address_forbidden"


def test_unusable_networks_stop_the_program_at_its_start():
    with pytest.raises(SettingsError):
        client(allow_networks=("10.0.0.1/8",))


def test_the_environment_has_no_say(monkeypatch, tmp_path):
    # The one place where a variable must be set for real: the promise is that it is not read.
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://10.0.0.1:3128")
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".netrc").write_text(f"machine {NAME} login a password b\n")
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "SSLKEYLOGFILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    answer, network = attempt({NAME: (PUBLIC,)})
    assert (answer.status, network.dialed) == (200, [(PUBLIC, 443)])
    assert b"authorization" not in network.heard[0][1].lower()
    assert not (tmp_path / "none").exists()


def test_an_answer_without_cookies_or_compression_is_asked_for_and_cookies_are_not_sent_back():
    async def case():
        network = Network()
        network.answers[PUBLIC] = OK.replace(b"\r\n\r\n", b"\r\nset-cookie: a=b\r\n\r\n")
        wire = client(names={NAME: (PUBLIC,)}, dialer=network, allow_networks=())
        for _ in range(2):
            await post(wire, URL)
        await wire.close()
        return network

    second = asyncio.run(case()).heard[1][1].lower()
    assert b"cookie" not in second and second.count(b"accept-encoding: identity\r\n") == 1


def test_a_connection_whose_transport_is_closing_is_not_used_again():
    async def case():
        network = Network()
        wire = client(names={NAME: (PUBLIC,)}, dialer=network, allow_networks=())
        await post(wire, URL)
        next(iter(wire.shared.pool.open)).transport.is_over = True  # a failed write, not yet told
        answer = await post(wire, URL)
        assert (answer.status, len(network.dialed)) == (200, 2)
        await wire.close()

    asyncio.run(case())
