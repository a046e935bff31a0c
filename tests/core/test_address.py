"""The table of addresses: every block, its edges and its neighbours."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from surehook.core import address
from surehook.core.address import AddressRules, judge, network

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "ssrf_addresses.tsv").read_text().splitlines()
    if not line.startswith("#")
]


@pytest.mark.parametrize(("verdict", "text", "_kind"), ROWS, ids=[row[1] for row in ROWS])
def test_every_address_of_the_list_gets_its_verdict(verdict, text, _kind):
    assert (judge(text, AddressRules()).refused is None) == (verdict == "allow"), judge(text, AddressRules())


def test_a_verdict_does_not_depend_on_the_spelling():
    for _, text, _ in ROWS:
        if ":" in text:
            long = ipaddress.IPv6Address(text).exploded
            assert (
                judge(long, AddressRules())
                == judge(text, AddressRules())
                == judge(text.upper(), AddressRules())
            )


@pytest.mark.parametrize(
    "text",
    ["", "1.2.3", "127.1", "01.1.1.1", "1.1.1.1.", "1.1.1.256", " 1.1.1.1", "1.1.1.1\n", "0x7f.0.0.1", "2130706433",
     "fe80::1%eth0", "::1%lo", "[::1]", "::ffff:127.1", "1:2:3", "::g", "1::2::3", "١.١.١.١", "localhost"],
)  # fmt: skip
def test_what_is_no_plain_address_is_refused(text):
    assert judge(text, AddressRules()).refused == "not an address"
    assert address.canonical(text) is None


def test_a_mapped_address_is_the_address_inside():
    assert judge("::ffff:8.8.8.8", AddressRules()) == ("8.8.8.8", None)
    assert judge("::ffff:127.0.0.1", AddressRules()) == ("127.0.0.1", "loopback")


def test_a_grant_opens_exactly_its_network():
    rules = AddressRules(allow=(network("10.1.0.0/16"), network("::1")))
    assert judge("10.1.255.255", rules).refused is None
    assert judge("::ffff:10.1.2.3", rules) == ("10.1.2.3", None)
    assert judge("64:ff9b::a01:203", rules).refused is None
    assert judge("::1", rules).refused is None
    assert judge("10.2.0.0", rules).refused == "private network"
    assert judge("127.0.0.1", rules).refused == "loopback"


def test_the_operators_denial_beats_grant_and_table():
    rules = AddressRules(allow=(network("10.0.0.0/8"),), deny=(network("10.9.0.0/16"), network("8.8.8.0/24")))
    assert judge("10.8.0.1", rules).refused is None
    assert judge("10.9.0.1", rules).refused == "denied by the operator"
    assert judge("8.8.8.8", rules).refused == "denied by the operator"
    assert judge("64:ff9b::808:808", rules).refused == "denied by the operator"
    assert not address.is_granted("10.9.0.1", rules) and address.is_granted("10.8.0.1", rules)


@pytest.mark.parametrize(
    ("prefix", "public", "private"),
    [
        ("2001:67c::/32", "2001:67c:808:808::", "2001:67c:a00:1::"),
        ("2001:67c:100::/40", "2001:67c:108:808:8::", "2001:67c:10a:0:1::"),
        ("2001:67c:122::/48", "2001:67c:122:808:8:800::", "2001:67c:122:a00:0:100::"),
        ("2001:67c:122:300::/56", "2001:67c:122:308:8:808::", "2001:67c:122:30a:0:1::"),
        ("2001:67c:122:344::/64", "2001:67c:122:344:8:808:800:0", "2001:67c:122:344:a:0:100:0"),
        ("2001:67c:122:344::/96", "2001:67c:122:344::808:808", "2001:67c:122:344::a00:1"),
        ("64:ff9b:1::/48", "64:ff9b:1:808:8:800::", "64:ff9b:1:a00:0:100::"),
    ],
)
def test_an_operators_nat64_prefix_is_judged_by_the_address_inside(prefix, public, private):
    rules = AddressRules(nat64=(address.nat64(prefix),))
    assert judge(public, rules).refused is None
    assert judge(private, rules).refused is not None


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/33", "x", "", "1.2.3"])
def test_a_network_that_is_none_is_a_value_error(text):
    with pytest.raises(ValueError):
        network(text)


@pytest.mark.parametrize("text", ["10.0.0.0/8", "2001:db8::/52"])
def test_a_nat64_prefix_has_one_of_six_lengths(text):
    with pytest.raises(ValueError):
        address.nat64(text)


def test_a_mapped_block_in_a_setting_means_the_block_inside():
    mapped = AddressRules(deny=(network("::ffff:8.8.8.0/120"), network("::ffff:9.9.9.9")))
    for text in ("8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "9.9.9.9"):
        assert judge(text, mapped).refused == "denied by the operator"
    assert judge("8.8.9.8", mapped).refused is None
    assert judge("::ffff:10.0.0.1", AddressRules(allow=(network("::ffff:10.0.0.0/104"),))).refused is None
