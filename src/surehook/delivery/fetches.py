"""Bounds of how many tokens are fetched at once: one for each credential, so many for a tenant and for the process.

Whoever makes an endpoint chooses its token server, which may take all of a fetch's time. What cannot be fetched now stands in
line, by tenant and in turns; its endpoints start nothing meanwhile, as during the fetch. The last places are for tenants that
fetch nothing, so that many who fetch at length hold up nobody's first one.

Within a tenant its token servers have turns, and one that fetches nothing finds a few places beyond the others. Credentials
whose last fetch failed come after all others and have a part of the places. A credential stands in line while a request waits
for it (`drop`), and requests have a time of their own: so the line holds nothing that nobody waits for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from surehook.delivery.credential import Credential

OF_TENANT = 16
OF_PROCESS = 128
LAST = 32  # places of the process that only who has none may take
BESIDE = 4  # places of a tenant beyond OF_TENANT, for token servers that fetch nothing for it
FAILING = 8  # places of a tenant that those may have whose last fetch failed

Line = dict[str, dict[Credential, None]]  # by token server, whose turn is next first; each an ordered set


class Fetches:
    """`begin` starts a fetch; `over` is said once it has ended."""

    def __init__(self, begin: Callable[[Credential], None]) -> None:
        self._begin = begin
        # By tenant, whose turn is next first: the hopeful, the failing.
        self._lines: dict[str, tuple[Line, Line]] = {}
        self._of_tenant: Counter[str] = Counter()
        self._of_server: Counter[tuple[str, str]] = Counter()
        self._failing: Counter[str] = Counter()  # fetches by tenant that began as failing ones
        self._under_way: dict[Credential, bool] = {}  # whether it began as a failing one

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    @property
    def in_line(self) -> int:
        return sum(
            len(credentials)
            for lines in self._lines.values()
            for line in lines
            for credentials in line.values()
        )

    def ask(self, credential: Credential) -> None:
        """Fetch now, or as soon as there is a place."""
        if self._may(credential, credential.is_failing):
            self._take(credential, credential.is_failing)
            return
        line = self._lines.setdefault(credential.tenant, ({}, {}))[credential.is_failing]
        line.setdefault(credential.client.token_url, {})[credential] = None

    def drop(self, credential: Credential) -> bool:
        """Nobody waits for it any more: out of the line. Whether it stood there."""
        for line in self._lines.get(credential.tenant, ()):
            if credential in line.get(credential.client.token_url, ()):
                self._take_out(line, credential)
                return True
        return False

    def over(self, credential: Credential) -> None:
        """Its fetch has ended, and its place is free."""
        tenant, server = credential.tenant, (credential.tenant, credential.client.token_url)
        self._failing[tenant] -= self._under_way.pop(credential)
        self._of_tenant[tenant] -= 1
        self._of_server[server] -= 1
        if not self._failing[tenant]:
            del self._failing[tenant]
        if not self._of_tenant[tenant]:
            del self._of_tenant[tenant]
        if not self._of_server[server]:
            del self._of_server[server]

    def begin_next(self) -> None:
        """Who is next begins, as far as there are places."""
        while (found := self._next()) is not None:
            self._take(*found)

    def _next(self) -> tuple[Credential, bool] | None:
        """Whose turn it is, now out of the line."""
        for tenant, lines in self._lines.items():
            if self.under_way >= OF_PROCESS:
                break
            if self._of_tenant[tenant] >= OF_TENANT + BESIDE:
                continue
            for is_failing, line in zip((False, True), lines, strict=True):
                for credentials in line.values():
                    credential = next(iter(credentials))
                    if self._may(credential, is_failing):
                        self._take_out(line, credential, turns=True)
                        return credential, is_failing
        return None

    def _take_out(self, line: Line, credential: Credential, *, turns: bool = False) -> None:
        """`turns`: it was the turn of its tenant and of its server, which go to the end."""
        server, tenant = credential.client.token_url, credential.tenant
        credentials = line[server]
        del credentials[credential]
        if turns or not credentials:
            del line[server]
        if credentials and turns:
            line[server] = credentials
        lines = self._lines[tenant]
        if turns or not any(lines):
            del self._lines[tenant]
        if any(lines) and turns:
            self._lines[tenant] = lines

    def _may(self, credential: Credential, is_failing: bool) -> bool:
        """Tell whether there is a place for such a credential."""
        tenant = credential.tenant
        used, free = self._of_tenant[tenant], OF_PROCESS - self.under_way
        if free <= LAST:
            return free > 0 and not used
        if is_failing and self._failing[tenant] >= FAILING:
            return False
        beside = 0 if self._of_server[tenant, credential.client.token_url] else BESIDE
        return used < OF_TENANT + beside

    def _take(self, credential: Credential, is_failing: bool) -> None:
        self._under_way[credential] = is_failing
        self._of_tenant[credential.tenant] += 1
        self._of_server[credential.tenant, credential.client.token_url] += 1
        self._failing[credential.tenant] += is_failing
        try:
            self._begin(credential)
        except BaseException:  # a defect in sending must not keep a place
            self.over(credential)
            raise
