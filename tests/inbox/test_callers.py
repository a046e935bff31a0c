"""Who may call: a table of connections and what proxies say of them."""

import pytest

from surehook.inbox import sources

ALLOWED, PROXIES = ["192.0.2.0/24", "2001:db8::/32"], ["10.0.0.0/8", "2001:db9::/32"]


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "admitted"),
    [
        ("192.0.2.7", [], True),
        ("198.51.100.1", [], False),
        ("2001:db8::1", [], True),
        ("::ffff:192.0.2.7", [], True),
        # nobody but a trusted proxy is believed about others
        ("198.51.100.1", ["192.0.2.7"], False),
        ("192.0.2.7", ["198.51.100.1"], True),
        ("10.0.0.1", ["192.0.2.7"], True),
        ("10.0.0.1", ["198.51.100.1"], False),
        # the caller wrote the first entry, the proxy the last
        ("10.0.0.1", ["192.0.2.7, 198.51.100.1"], False),
        ("10.0.0.1", ["192.0.2.7", "198.51.100.1"], False),
        ("10.0.0.1", ["198.51.100.1, 192.0.2.7"], True),
        ("10.0.0.1", ["192.0.2.7, 10.0.0.2"], True),
        ("10.0.0.1", ["192.0.2.7, 198.51.100.1, 10.0.0.2"], False),
        ("2001:db9::1", ["192.0.2.7:4711"], True),
        ("10.0.0.1", ["[2001:db8::1]:443"], True),
        # a proxy that says nothing is the caller itself
        ("10.0.0.1", [], False),
        ("10.0.0.1", [""], False),
        ("10.0.0.1", ["unknown"], False),
        ("", [], False),
        ("unix", ["192.0.2.7"], False),
        ("10.0.0.1", [", ".join(["10.0.0.1"] * 21)], False),
    ],
)
def test_a_caller_is_admitted_by_the_address_that_a_trusted_proxy_saw(peer, forwarded_for, admitted):
    source = sources.named("adobe_sign", secret="ID", networks=ALLOWED, trusted_proxies=PROXIES)
    assert source.admits(peer, forwarded_for) is admitted


def test_without_networks_everybody_may_call():
    assert sources.named("github", secret="s").admits("anything")
