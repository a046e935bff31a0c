"""Translation of foreign errors into the closed set of `ports/transport.py`, at the one edge they come in by."""

from __future__ import annotations

import errno
import re
import ssl

from surehook.ports.transport import Failure

# Our machine's limits, not the endpoint's fault.
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
_RESET = frozenset({errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ENOTCONN})
_SPARE_PORTS = errno.EADDRNOTAVAIL

# What a server says about our certificate, or about having been shown none (RFC 8446 section 6.2).
_CERTIFICATE_ALERT = re.compile(
    r"ALERT_(?:CERTIFICATE_REQUIRED|UNKNOWN_CA|ACCESS_DENIED|NO_CERTIFICATE|(?:BAD|UNSUPPORTED)_CERTIFICATE"
    r"|CERTIFICATE_(?:EXPIRED|REVOKED|UNKNOWN))$"
)
# X509_V_ERR_* of OpenSSL
_EXPIRED = frozenset({9, 10, 11, 12, 13, 14})  # not yet valid, expired, and unreadable dates
_NAME = frozenset({62, 63, 64})  # host name, e-mail, address mismatch


def of_connect(error: OSError, address: str) -> Failure:
    """The failure of a TCP connection that was not established."""
    number = error.errno
    if number == errno.ECONNREFUSED:
        return "connect_refused"
    if number in _OURS or (number == _SPARE_PORTS and ":" not in address):
        return "no_resources"  # without IPv6, the same number only means that this address has no way
    if number in _RESET:
        return "connect_reset"
    if number == errno.ETIMEDOUT:
        return "connect_timeout"
    return "connect_unreachable"


def of_tls(error: Exception) -> Failure:
    """The failure of a TLS handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _EXPIRED:
            return "tls_expired"
        return "tls_name" if error.verify_code in _NAME else "tls_untrusted"
    if _is_about_our_certificate(error):
        return "tls_client_certificate"
    if isinstance(error, ssl.SSLError) or not isinstance(error, OSError):
        return "tls_protocol"
    if error.errno in _OURS:
        return "no_resources"
    # A close in the middle of the handshake comes without a number: the peer did not like what it heard.
    return "connect_reset" if error.errno in _RESET else "tls_protocol"


def of_loss(error: Exception) -> Failure:
    """The failure of an open connection. In TLS 1.3 the server looks at a client certificate after our side of the
    handshake is over, so its refusal comes as an alert in the place of the answer."""
    return "tls_client_certificate" if _is_about_our_certificate(error) else "reset"


def _is_about_our_certificate(error: Exception) -> bool:
    return isinstance(error, ssl.SSLError) and _CERTIFICATE_ALERT.search(error.reason or "") is not None
