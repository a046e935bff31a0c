"""TLS contexts: verified, named, 1.2 or newer, and deaf to the environment.

`ssl.create_default_context` obeys SSL_CERT_FILE, SSL_CERT_DIR and SSLKEYLOGFILE; a delivery must not trust
another authority, or write its keys somewhere, because of a variable that was meant for another program.
"""

from __future__ import annotations

import os
import ssl

from surehook.core.errors import SettingsError

# Where distributions keep the bundle when OpenSSL was built with other paths (portable Pythons).
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/opt/homebrew/etc/ca-certificates/cert.pem",
)
PEM_HINT = "a file of certificates as PEM: -----BEGIN CERTIFICATE----- ..."


def client_context(*, ca_file: str | None = None) -> ssl.SSLContext:
    """The common context for connecting out. `ca_file` names authorities that are trusted beside the system's.

    Raises SettingsError where the file cannot be read or holds no certificate.
    """
    context = bare_context()
    try:
        _load_system(context)
        if ca_file is not None:
            context.load_verify_locations(cafile=ca_file)
    except ssl.SSLError as error:
        raise SettingsError(
            "ca_file", f"{ca_file} holds no certificates that can be read: {error.reason}", hint=PEM_HINT
        ) from None
    except OSError as error:
        raise SettingsError("ca_file", f"{ca_file} cannot be read: {error.strerror}", hint=PEM_HINT) from None
    return context


def bare_context() -> ssl.SSLContext:
    """A context that trusts nobody yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a CA file may name an intermediate alone
    context.set_alpn_protocols(["http/1.1"])
    return context


def _load_system(context: ssl.SSLContext) -> None:
    paths = ssl.get_default_verify_paths()
    if os.path.isdir(paths.openssl_capath):
        context.load_verify_locations(capath=paths.openssl_capath)
    for bundle in (paths.openssl_cafile, *BUNDLES):
        if os.path.isfile(bundle):
            context.load_verify_locations(cafile=bundle)
            return
