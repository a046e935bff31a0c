"""The guard: one judgement for registration, test calls, deliveries, replays and every hop of a redirect.

It reads a URL strictly, judges literals and names, and judges every address a name resolves to. One bad
address refuses the whole answer: a name that points both ways is either broken or a trick.
"""

from __future__ import annotations

from collections.abc import Sequence

from surehook.core import address, hostname
from surehook.core.errors import Problem, SettingsError
from surehook.core.url import NetworkPolicy, Url, forbidden_address, parse
from surehook.ports.resolver import Resolver
from surehook.ports.transport import Failure
from surehook.wire.settings import WireSettings

ADDRESSES = 16  # dialled at most, of one answer; all of the answer is judged


class Guard:
    """Built from settings and never changed: other rules need another guard, and with it another client."""

    def __init__(self, settings: WireSettings) -> None:
        self._everybody = self._policy(settings, settings.allow_networks, "allow_networks")
        self._tenants = {
            tenant: self._policy(settings, settings.allow_networks + networks, "tenant_networks")
            for tenant, networks in settings.tenant_networks.items()
        }

    def policy_of(self, tenant: str) -> NetworkPolicy:
        """The rules for one tenant: the same object for the same rules."""
        return self._tenants.get(tenant, self._everybody)

    def read(self, url: str, policy: NetworkPolicy) -> Url:
        """A URL judged as far as text goes. Raises Problem."""
        return parse(url, policy)

    def judge(self, addresses: Sequence[str], policy: NetworkPolicy) -> tuple[str, ...]:
        """Judge the addresses of a name: the canonical ones to dial, in order, without repeats.

        All are judged, at most sixteen are returned. Empty if one is refused, or there is none.
        """
        judged = [address.judge(text, policy.rules) for text in addresses]
        if any(verdict.refused is not None for verdict in judged):
            return ()
        return tuple(dict.fromkeys(verdict.address for verdict in judged))[:ADDRESSES]

    def known(self, url: Url, policy: NetworkPolicy) -> tuple[str, ...]:
        """Addresses that need no resolver: of a literal, or of `localhost` where it is granted."""
        if url.literal:
            return self.judge((url.host,), policy)
        return hostname.local_addresses(policy.rules) if hostname.is_local(url.host) else ()

    async def check(self, url: str, policy: NetworkPolicy, resolver: Resolver) -> None:
        """Judge a URL for registration. A name that does not resolve now passes: it is judged at each attempt.

        Raises Problem.
        """
        read = self.read(url, policy)
        if read.literal or hostname.is_local(read.host):
            return
        resolved = await resolver.resolve(read.host)
        if resolved.addresses and not self.judge(resolved.addresses, policy):
            raise forbidden_address()

    @staticmethod
    def _policy(settings: WireSettings, allow: tuple[str, ...], key: str) -> NetworkPolicy:
        try:
            rules = address.AddressRules(
                allow=tuple(map(address.network, allow)),
                deny=tuple(map(address.network, settings.deny_networks)),
                nat64=tuple(map(address.nat64, settings.nat64_prefixes)),
            )
        except ValueError as error:
            raise SettingsError(key, str(error), hint="CIDR blocks such as 10.0.0.0/8 or fd00::/8") from error
        return NetworkPolicy(
            rules=rules,
            allow_http=settings.allow_http,
            allow_ports=settings.allow_ports,
            own_hosts=frozenset(name.lower().removesuffix(".") for name in settings.own_hosts),
        )


def failure_of(problem: Problem) -> Failure:
    """The name of a refusal in an attempt."""
    return "address_forbidden" if problem.code == "address_forbidden" else "url_forbidden"
