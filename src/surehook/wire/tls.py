"""TLS contexts: verified, named, 1.2 or newer, and deaf to the environment.

`ssl.create_default_context` obeys SSL_CERT_FILE, SSL_CERT_DIR and SSLKEYLOGFILE; a delivery must not trust
another authority, or write its keys somewhere, because of a variable that was meant for another program.
"""

from __future__ import annotations

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from surehook.core.errors import SettingsError

# Where distributions keep the bundle when OpenSSL was built with other paths (portable Pythons).
BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/opt/homebrew/etc/ca-certificates/cert.pem",
)
# The same as one file an authority, named by the hash that OpenSSL looks for: read only where it is needed.
HASHED = ("/etc/ssl/certs", "/etc/pki/ca-trust/extracted/pem/directory-hash")

PEM_HINT = "a file of certificates as PEM: -----BEGIN CERTIFICATE----- ..."


def client_context(*, ca_file: str | None = None) -> ssl.SSLContext:
    """The common context for connecting out. `ca_file` names authorities that are trusted beside the system's.

    Raises SettingsError where the file cannot be read or holds no certificate.
    """
    context = bare_context()
    load_system(context)
    load_file(context, ca_file)
    return context


def bare_context() -> ssl.SSLContext:
    """A context that trusts nobody yet."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a CA file may name an intermediate alone
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_file(context: ssl.SSLContext, ca_file: str | None) -> None:
    """Trust the authorities of a file too. Raises SettingsError."""
    if ca_file is None:
        return
    try:
        context.load_verify_locations(cafile=ca_file)
    except ssl.SSLError as error:
        raise SettingsError(
            "ca_file", f"{ca_file} holds no certificates that can be read: {error.reason}", hint=PEM_HINT
        ) from None
    except OSError as error:
        raise SettingsError("ca_file", f"{ca_file} cannot be read: {error.strerror}", hint=PEM_HINT) from None


def load_system(context: ssl.SSLContext) -> None:
    """Trust the system's authorities: about 20 ms and 2 MiB."""
    paths = ssl.get_default_verify_paths()
    if os.path.isdir(paths.openssl_capath):
        context.load_verify_locations(capath=paths.openssl_capath)
    for bundle in (paths.openssl_cafile, *BUNDLES):
        if os.path.isfile(bundle):
            context.load_verify_locations(cafile=bundle)
            return


def load_system_lazily(context: ssl.SSLContext) -> bool:
    """Trust the system's authorities, each read when a certificate names it. False where the system cannot do that."""
    for folder in HASHED:
        with suppress(OSError):
            if any(name.endswith(".0") for name in os.listdir(folder)):
                context.load_verify_locations(capath=folder)
                return True
    return False


def load_own(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Show this certificate (PEM, leaf first) where a server asks. Raises ssl.SSLError, OSError.

    `ssl` reads files only; the key gets one that is never linked into a folder where the system can do that.
    """
    with _as_file(f"{certificate}\n{key}\n".encode()) as path:
        context.load_cert_chain(path, password="")  # an encrypted key must fail, not ask the terminal


@contextmanager
def _as_file(held: bytes) -> Iterator[str]:
    if sys.platform == "linux":
        handle = os.memfd_create("pem", os.MFD_CLOEXEC)
        try:
            os.write(handle, held)
            yield f"/proc/self/fd/{handle}"
        finally:
            os.close(handle)
        return
    with tempfile.NamedTemporaryFile() as file:  # readable by its owner alone
        file.write(held)
        file.flush()
        yield file.name
