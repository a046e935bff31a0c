"""TLS contexts by setting: the common one, and those of endpoints that have their own, built when first dialled.

Building one takes a millisecond, keeping one 24 KiB; a thousand endpoints with their own must cost neither at
the start nor for ever. So they are kept by budget, the least recently dialled goes first, and a connection in
use keeps its own alive.
"""

from __future__ import annotations

import ssl
from collections import OrderedDict

from surehook.core.errors import SettingsError
from surehook.ports.transport import Failure
from surehook.wire.material import Own
from surehook.wire.tls import client_context

BUDGET_KIB = 16 * 1024
SMALL_KIB, LARGE_KIB = 24, 2_200  # measured; large: with the system's authorities inside


class Unusable(Exception):
    """A setting that was accepted once makes no context any more; calls fail with `failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure: Failure = failure


class Contexts:
    """`common` None: made of the system's authorities and `ca_file`."""

    def __init__(self, *, ca_file: str | None, common: ssl.SSLContext | None = None) -> None:
        self._ca_file = ca_file
        self._common = common
        if ca_file is not None and common is None:
            self._common = client_context(ca_file=ca_file)  # now, so that a bad file stops the start
        self._own: OrderedDict[bytes, tuple[ssl.SSLContext, int]] = OrderedDict()
        self.held_kib = 0  # of endpoints' own

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
        kib = SMALL_KIB if is_small else LARGE_KIB
        self._own[own.fingerprint] = context, kib
        self.held_kib += kib
        while self.held_kib > BUDGET_KIB:
            _, (_, freed) = self._own.popitem(last=False)
            self.held_kib -= freed
        return context
