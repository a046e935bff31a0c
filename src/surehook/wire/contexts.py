"""TLS contexts by setting: the common one, and those of endpoints that have their own, built when first dialled.

Building one takes a millisecond and keeping one 24 KiB, and as much again for every three KiB of certificates that it
trusts; a thousand endpoints with their own must cost neither at the start nor for ever. So they are built in turns
(`context_turns.py`), kept by budget, the least recently dialled goes first, and a connection in use keeps its own alive.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict
from collections.abc import Callable

from surehook.core.errors import SettingsError
from surehook.ports.transport import Failure
from surehook.wire.context_turns import ContextTurns
from surehook.wire.material import Own
from surehook.wire.tls import client_context

BUDGET_KIB = 16 * 1024
SMALL_KIB, LARGE_KIB = 24, 2_200  # measured; large: with the system's authorities inside
TRUSTED_KIB = 9  # measured: 90 certificates in 40 KiB of text take 340 KiB, and 8.4 ms
SMALL_S = 0.002  # building so long is a slice like others
RESTS = 3  # after building for longer: so many times as long


class Unusable(Exception):
    """A setting that was accepted once makes no context any more; calls fail with `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure: Failure = failure


class Contexts:
    """`common` None: made of the system's authorities and `ca_file`. `boot`: seconds on a clock that never steps."""

    def __init__(
        self,
        *,
        ca_file: str | None,
        common: ssl.SSLContext | None = None,
        boot: Callable[[], float],
    ) -> None:
        self._boot = boot
        self._ca_file = ca_file
        self._common = common
        if ca_file is not None and common is None:
            self._common = client_context(ca_file=ca_file)  # now, so that a bad file stops the start
        self._own: OrderedDict[bytes, tuple[ssl.SSLContext, int]] = OrderedDict()
        self.held_kib = 0  # of endpoints' own
        self._turns = ContextTurns()

    async def in_turn(self, own: Own | None, tenant: str) -> ssl.SSLContext:
        """`of`, waiting for a turn where a context has to be built. Raises Unusable."""
        if own is None or own.fingerprint in self._own:
            return self.of(own)
        await self._turns.turn(tenant)
        began = self._boot()
        try:
            return self.of(own)
        finally:
            took_s = self._boot() - began
            self._turns.rest(took_s * RESTS if took_s > SMALL_S else 0.0)

    def of(self, own: Own | None) -> ssl.SSLContext:
        """The context of a setting. Raises Unusable."""
        if own is None:
            if self._common is None:
                self._common = client_context()
            return self._common
        kept = self._own.get(own.fingerprint)
        if kept is not None:
            self._own.move_to_end(own.fingerprint)
            return kept[0]
        try:
            context, is_small = own.context(self._ca_file)
        except (OSError, SettingsError):  # ssl.SSLError is an OSError
            shows = own.tls.client_certificate is not None
            raise Unusable("tls_client_certificate" if shows else "tls_untrusted") from None
        kib = (SMALL_KIB if is_small else LARGE_KIB) + TRUSTED_KIB * (len(own.tls.ca or "") >> 10)
        self._own[own.fingerprint] = context, kib
        self.held_kib += kib
        while self.held_kib > BUDGET_KIB:
            _, (_, freed) = self._own.popitem(last=False)
            self.held_kib -= freed
        return context
