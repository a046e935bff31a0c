"""The TLS material of one endpoint, judged when it is given: what would fail at every call is refused at once.

What an endpoint trusts (`ca`) takes the place of the system's authorities for that endpoint; what it shows
(`client_certificate`, leaf first, and `client_key`) is sent to its own origin alone, never along a redirect.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import ssl

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from msgspec import Struct

from surehook.core.errors import Problem
from surehook.core.model import EndpointTls
from surehook.wire import tls as contexts

RSA_BITS_MAX = 4096  # a signature costs 5 ms of our time then, and eight times that with twice the bits
CERTIFICATES = 100  # in one text; a company's bundle has some dozens

_Keys = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey
_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----")


class Own(Struct, frozen=True):
    """One distinct setting; equal settings of one tenant share connections, others never do."""

    tls: EndpointTls
    fingerprint: bytes  # of tenant and texts

    def context(self, ca_file: str | None) -> tuple[ssl.SSLContext, bool]:
        """A context of this setting, and whether it is small (about 24 KiB; else it holds the system's authorities,
        2 MiB). Raises ssl.SSLError, OSError."""
        context, is_small = contexts.bare_context(), True
        if self.tls.ca is not None:
            context.load_verify_locations(cadata=self.tls.ca)
        else:
            is_small = contexts.load_system_lazily(context)
            if not is_small:
                contexts.load_system(context)
            contexts.load_file(context, ca_file)
        if self.tls.client_certificate is not None and self.tls.client_key is not None:
            contexts.load_own(context, self.tls.client_certificate, self.tls.client_key)
        return context, is_small


def own(tls: EndpointTls | None, tenant: str) -> Own | None:
    """The setting of an endpoint, or None where it has none of its own."""
    if tls is None or tls == EndpointTls():
        return None
    parts = (tenant, tls.ca, tls.client_certificate, tls.client_key)
    return Own(tls, hashlib.sha256(repr(parts).encode()).digest())


def check(tls: EndpointTls, *, url: str, now: int) -> None:
    """Judge the material for an endpoint at `url`, as of `now` (Unix milliseconds).

    Raises Problem `invalid_tls` with the field: no https, not PEM, no certificate, expired, a key where everybody
    can read it, key and certificate that do not belong together, a kind of key that is not taken.
    """
    if not url[:6].lower() == "https:":
        raise _problem("", "an http:// address has no TLS", "use an https:// address, or leave tls out")
    moment = datetime.datetime.fromtimestamp(now / 1000, datetime.UTC)
    if tls.ca is not None:
        authorities = _certificates("ca", tls.ca)
        if all(each.not_valid_after_utc < moment for each in authorities):
            raise _problem("ca", "every certificate in it has expired", "give the authority's current one")
    if tls.client_certificate is not None and tls.client_key is not None:
        _check_pair(tls.client_certificate, tls.client_key, moment)
    elif tls.client_certificate is not None or tls.client_key is not None:
        missing = "client_key" if tls.client_key is None else "client_certificate"
        raise _problem(missing, "a client certificate and its key come together", "give both, or neither")
    try:
        Own(tls, b"").context(None)
    except (ssl.SSLError, OSError) as error:
        reason = str(getattr(error, "reason", None) or "unknown").lower().replace("_", " ")
        field = "ca" if tls.client_certificate is None else "client_certificate"
        raise _problem(
            field, f"TLS cannot use it: {reason}", "give a certificate with a current kind of key"
        ) from None


def _check_pair(certificate: str, key: str, moment: datetime.datetime) -> None:
    leaf = _certificates("client_certificate", certificate)[0]
    if leaf.not_valid_after_utc < moment:
        raise _problem("client_certificate", f"it expired on {leaf.not_valid_after_utc:%Y-%m-%d}",
                       "give a renewed certificate, the endpoint's own first in the text")  # fmt: skip
    private = _private_key(key)
    shown = leaf.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) != shown:
        raise _problem("client_key", "it is not the key of the client certificate",
                       "the first certificate in client_certificate is the one the key belongs to")  # fmt: skip


def _certificates(field: str, text: str) -> list[x509.Certificate]:
    if _KEY.search(text):
        raise _problem(field, "it holds a private key, and this field is shown to everybody who may read the endpoint",
                       "keys belong in client_key; take this one for known")  # fmt: skip
    try:
        found = x509.load_pem_x509_certificates(text.encode())
        for each in found:
            each.public_key()
    except (ValueError, UnsupportedAlgorithm):
        found = []
    if not 1 <= len(found) <= CERTIFICATES:
        raise _problem(field, f"it is not 1 to {CERTIFICATES} certificates as PEM",
                       "-----BEGIN CERTIFICATE----- ... with its line breaks")  # fmt: skip
    return found


def _private_key(text: str) -> _Keys:
    try:
        # Its numbers are compared with the certificate's below; proving primes of a hostile key takes seconds.
        found = load_pem_private_key(text.encode(), password=None, unsafe_skip_rsa_key_validation=True)
    except TypeError:
        raise _problem("client_key", "it is encrypted", "give the key without a passphrase") from None
    except (ValueError, UnsupportedAlgorithm):
        raise _problem("client_key", "it is not a private key as PEM",
                       "-----BEGIN PRIVATE KEY----- ... with its line breaks") from None  # fmt: skip
    is_large = isinstance(found, rsa.RSAPrivateKey) and found.key_size > RSA_BITS_MAX
    if is_large or not isinstance(found, _Keys):
        raise _problem("client_key", "this kind of key is not taken",
                       f"an elliptic curve key, or RSA of 2048 to {RSA_BITS_MAX} bits")  # fmt: skip
    return found


def _problem(field: str, detail: str, hint: str) -> Problem:
    return Problem("invalid_tls", detail, field=f"tls.{field}" if field else "tls", hint=hint)
