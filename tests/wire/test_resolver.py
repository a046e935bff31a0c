"""Names to addresses: the cache on a clock in hand, and c-ares against a name server on loopback."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from surehook.ports.resolver import Resolved
from surehook.wire import resolver
from surehook.wire.resolver import CachingResolver, DnsResolver
from tests.wire.nameserver import AAAA, REFUSED, SERVFAIL, NameServer

MANY = tuple(f"9.9.{n // 250}.{n % 250 + 1}" for n in range(1_000))
ZONE: dict[str, tuple[str, ...] | int] = {
    "one.company.com": ("8.8.8.8",),
    "both.company.com": ("8.8.8.8", "2606:4700:4700::1111"),
    "six.company.com": ("2606:4700:4700::1111",),
    "many.company.com": MANY,
    "alias.company.com": ("one.company.com.",),
    "inside.company.com": ("private.internal.",),
    "private.internal": ("10.0.0.1",),
    "empty.company.com": (),
    "broken.company.com": SERVFAIL,
    "refused.company.com": REFUSED,
    "loop.company.com": ("loop.company.com.",),
    "metadata": ("8.8.8.8",),
}


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    return {"asyncio": asyncio.run, "uvloop": uvloop.run}[request.param]


def ask(run, name, **server):
    async def case():
        async with NameServer(ZONE, **server).running() as names:
            dns = DnsResolver(lambda: 0.0, servers=(f"127.0.0.1:{names.port}",))
            found = await dns.resolve(name)
            cached = dns.cached(name)
            await dns.close()
            return found, cached, names

    return run(case())


@pytest.mark.parametrize(
    ("name", "addresses"),
    [("one.company.com", {"8.8.8.8"}), ("both.company.com", {"8.8.8.8", "2606:4700:4700::1111"}), ("six.company.com", {"2606:4700:4700::1111"}),
     ("alias.company.com", {"8.8.8.8"}), ("inside.company.com", {"10.0.0.1"}), ("many.company.com", set(MANY))],
)  # fmt: skip
def test_all_addresses_of_both_families_are_found_through_aliases_and_truncation(run, name, addresses):
    found, cached, _ = ask(run, name)
    assert (set(found.addresses), found.failure) == (addresses, None)
    assert cached is found


@pytest.mark.parametrize(
    ("name", "failure"),
    [("nothing.company.com", "dns_nxdomain"), ("empty.company.com", "dns_nxdomain"), ("broken.company.com", "dns_failure"),
     ("refused.company.com", "dns_failure")],
)  # fmt: skip
def test_a_failed_answer_has_its_name(run, name, failure):
    found, _, _ = ask(run, name)
    assert (found.addresses, found.failure) == ((), failure)


def test_an_alias_to_itself_is_no_address(run):
    found, _, _ = ask(run, "loop.company.com")
    assert found.addresses == () and found.failure in ("dns_nxdomain", "dns_failure")


def test_a_silent_server_is_a_timeout(run, monkeypatch):
    monkeypatch.setattr(resolver, "TRIES", 1)  # all tries together are too long for a test
    found, _, _ = ask(run, "one.company.com", silent=frozenset({"one.company.com"}))
    assert found == Resolved(failure="dns_timeout")


def test_silence_about_one_family_leaves_time_for_the_other(run):
    found, _, names = ask(run, "both.company.com", silent_kind=AAAA)
    assert found == Resolved(("8.8.8.8",))
    assert len(names.asked) == 2, "the silent question is not asked again"
    assert resolver.QUERY_S <= 0.5, "half of the shortest first attempt"


def test_names_are_absolute_whatever_the_environment_says(run, monkeypatch):
    # Variables are set for real here, since the promise is that they have no say.
    monkeypatch.setenv("LOCALDOMAIN", "company.com")
    monkeypatch.setenv("RES_OPTIONS", "ndots:5")
    _, _, names = ask(run, "one")
    assert set(names.asked) <= {"one"}


class Asked:
    """A resolver's inside that answers when told."""

    def __init__(self, ttl: float, resolved: Resolved | None = None) -> None:
        self.now = 0.0
        self.count = 0
        self.ttl = ttl
        self.resolved = resolved or Resolved(("8.8.8.8",))
        self.go = asyncio.Event()
        self.resolver = CachingResolver(lambda: self.now, self.ask)

    async def ask(self, host):
        self.count += 1
        await self.go.wait()
        return self.resolved, self.ttl


def test_an_answer_is_kept_for_its_ttl_but_never_over_thirty_seconds():
    async def case():
        for ttl, kept_s in ((5, 5), (30, 30), (604_800, 30)):
            asked = Asked(ttl)
            asked.go.set()
            await asked.resolver.resolve("x")
            asked.now = kept_s - 0.001
            assert asked.resolver.cached("x") is not None
            asked.now = kept_s
            assert asked.resolver.cached("x") is None
            await asked.resolver.resolve("x")
            assert asked.count == 2

    asyncio.run(case())


def test_an_answer_without_ttl_is_not_kept_and_a_failure_for_a_second():
    async def case():
        asked = Asked(0)
        asked.go.set()
        await asked.resolver.resolve("x")
        assert asked.resolver.cached("x") is None
        asked = Asked(99, Resolved(failure="dns_nxdomain"))
        asked.go.set()
        await asked.resolver.resolve("x")
        asked.now = 0.999
        assert asked.resolver.cached("x") is not None
        asked.now = 1.0
        assert asked.resolver.cached("x") is None

    asyncio.run(case())


def test_a_herd_asks_once_and_one_who_leaves_takes_nobody_along():
    async def case():
        asked = Asked(5)
        herd = [asyncio.ensure_future(asked.resolver.resolve("x")) for _ in range(9)]
        await asyncio.sleep(0)
        herd[0].cancel()
        asked.go.set()
        found = await asyncio.gather(*herd, return_exceptions=True)
        assert isinstance(found[0], asyncio.CancelledError) and len({id(each) for each in found[1:]}) == 1
        assert asked.count == 1

    asyncio.run(case())


def test_the_cache_is_bounded():
    async def case():
        asked = Asked(30)
        asked.go.set()
        for n in range(resolver.NAMES + 5):
            await asked.resolver.resolve(f"n{n}")
        assert asked.resolver.cached("n0") is None and asked.resolver.cached(f"n{resolver.NAMES}") is not None
        assert len(asked.resolver._kept) == resolver.NAMES

    asyncio.run(case())
