"""Secrets and public keys, prepared for comparing. The provider has the algorithm; a request never chooses it.

Public keys are never used as secrets of an HMAC, where anybody could sign with them. Keys that accept forged signatures,
and RSA keys short enough to be broken, are refused when they are given.
"""

from __future__ import annotations

import hmac
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Callable, Sequence
from typing import Any

from surehook.core.signature import PREFIX_PRIVATE, PREFIX_PUBLIC, SecretError
from surehook.core.sources.provider import Signed, Token
from surehook.core.verification import Key, Keys, VerifyError, checked_point, ed25519_matcher, public_point

SECRET_CHARS = 4_096  # tokens with many claims run to 3 KB
KEYS = 100  # secrets of one source; a rotation needs two
RSA_BITS_MIN = 2_048
EMPTY = "is the setting that it comes from empty, or not set?"

Matcher = Callable[[bytes, bytes], bool]  # (signed content, signature) → does it match?

_HASHES = {"hmac-sha256": "sha256", "hmac-sha512": "sha512", "hmac-sha1": "sha1"}


def given(keys: Keys | None) -> list[Key]:
    """The keys as a list of `Key`. Raises VerifyError bad_secret."""
    if keys is None:
        raise VerifyError("bad_secret", "a secret is text, and not a NoneType", hint=EMPTY)
    listed = [keys] if isinstance(keys, str | Key) else keys
    if not isinstance(listed, Sequence) or not 0 < len(listed) <= KEYS:
        raise VerifyError(
            "bad_secret", f"1 to {KEYS} keys are needed", hint="a secret, or a list of secrets, as text"
        )
    read = [one if isinstance(one, Key) else Key(one) for one in listed]
    for key in read:
        if not isinstance(key.secret, str) or not 0 < len(key.secret) <= SECRET_CHARS:
            what = "an empty text" if key.secret == "" else f"a {type(key.secret).__name__}"
            raise VerifyError(
                "bad_secret",
                f"a secret is text of 1 to {SECRET_CHARS} characters, and not {what}",
                hint=EMPTY,
            )
        if not (_is_instant(key.not_before) and _is_instant(key.not_after)):
            raise VerifyError("bad_secret", "a key holds from and to Unix seconds")
    return read


def _is_instant(bound: object) -> bool:
    return bound is None or (isinstance(bound, int | float) and bound == bound)  # NaN would hold for ever


def matcher(scheme: Signed, key: Key) -> Matcher:
    """The function that compares signatures under this key. Raises VerifyError bad_secret."""
    try:
        if scheme.algorithm in _HASHES:
            return _hmac(_HASHES[scheme.algorithm], secret_bytes(key.secret))
        if scheme.algorithm == "ed25519":
            return _ed25519(key.secret)
        return _asymmetric(scheme.algorithm, key.secret)
    except SecretError as error:
        raise VerifyError("bad_secret", error.detail, hint=error.hint) from None


def secret_bytes(text: str) -> bytes:
    """The bytes of a secret that is used as text. Raises VerifyError for what cannot be one."""
    if text != text.strip():
        raise SecretError("the secret begins or ends with white space", hint="was a line end copied along?")
    if text.startswith((PREFIX_PUBLIC, PREFIX_PRIVATE, "-----BEGIN")):
        raise SecretError("a public or private key is no secret of an HMAC: anybody could sign with it")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise SecretError("the secret is not text") from None


def token_bytes(scheme: Token, key: Key) -> bytes:
    try:
        return scheme.prefix.encode() + secret_bytes(key.secret)
    except SecretError as error:
        raise VerifyError("bad_secret", error.detail, hint=error.hint) from None


def _hmac(name: str, secret: bytes) -> Matcher:
    return lambda content, value: hmac.compare_digest(hmac.digest(secret, content, name), value)


def _ed25519(text: str) -> Matcher:
    """`whpk_…`, or 32 bytes in hex."""
    try:
        raw = bytes.fromhex(text) if len(text) == 64 else b""
    except ValueError:
        raw = b""
    matches: Matcher = ed25519_matcher(checked_point(raw) if raw else public_point(text))
    return matches


def _asymmetric(algorithm: str, text: str) -> Matcher:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.hashes import SHA256
    except ImportError:
        raise SecretError(
            f"{algorithm} needs the cryptography package", hint="pip install cryptography"
        ) from None
    public = _loaded(text)
    if algorithm == "ecdsa-p256-sha256":
        if not (isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1)):
            raise SecretError("not a public key on the curve P-256")
        options: tuple[object, ...] = (ec.ECDSA(SHA256()),)
    else:
        if not isinstance(public, rsa.RSAPublicKey) or public.key_size < RSA_BITS_MIN:
            raise SecretError(f"not an RSA public key or certificate of at least {RSA_BITS_MIN} bits")
        options = (padding.PKCS1v15(), SHA256())

    def matches(content: bytes, value: bytes) -> bool:
        try:
            public.verify(value, content, *options)
        except InvalidSignature:
            return False
        return True

    return matches


def _loaded(text: str) -> Any:
    """A public key: a certificate or key in PEM, or the base64 of a key in DER."""
    from cryptography.hazmat.primitives.serialization import load_der_public_key, load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        if "-----BEGIN CERTIFICATE-----" in text:
            return load_pem_x509_certificate(text.encode("ascii")).public_key()
        if "-----BEGIN" in text:
            return load_pem_public_key(text.encode("ascii"))
        return load_der_public_key(a2b_base64(text.encode("ascii"), strict_mode=True))
    except (Base64Error, ValueError):
        raise SecretError("not a public key that can be read", hint="PEM, or the base64 of DER") from None
    except Exception as error:  # the loader's own kinds, UnsupportedAlgorithm among them
        raise SecretError(f"not a public key that can be used ({type(error).__name__})") from None
