"""Standard Webhooks 1.0.0: signatures, and secrets as text.

Signed are the bytes `{id}.{timestamp}.{body}`. `v1` is HMAC-SHA256 with a secret of 24 to 64 random bytes,
written `whsec_` and base64. `v1a` is Ed25519: the private key is written `whsk_`, the public one `whpk_`.
The prefix decides the algorithm. A verifier that took any text as a secret would let a public key act as an
HMAC secret, so nothing is ever guessed.

During a rotation a request carries one signature for each active secret, newest first.
"""

from __future__ import annotations

import hashlib
import hmac
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from surehook.core import limits
from surehook.core.errors import SurehookError

V1, V1A = "v1", "v1a"
PREFIX_SECRET, PREFIX_PRIVATE, PREFIX_PUBLIC = "whsec_", "whsk_", "whpk_"


class SecretError(SurehookError):
    """A text or some bytes cannot be a signing secret. The message never repeats the secret."""

    def __init__(self, detail: str, *, hint: str | None = None) -> None:
        super().__init__(detail)
        self.code = "bad_secret"
        self.detail = detail
        self.hint = hint


def generate_secret(entropy: bytes) -> str:
    """A `v1` secret as text from 24 to 64 random bytes (`limits.SECRET_BYTES_DEFAULT` is the usual length)."""
    return write_secret(V1, entropy)


def write_secret(kind: str, material: bytes) -> str:
    """The text of a secret: `whsec_…` for v1; `whsk_…` (seed and public key) for v1a. Raises SecretError."""
    _check_material(kind, material)
    if kind == V1A:
        return PREFIX_PRIVATE + _b64(material + public_key(material))
    return PREFIX_SECRET + _b64(material)


def read_secret(text: str) -> tuple[str, bytes]:
    """Kind and material of a signing secret. `whsk_` may hold the 32-byte seed alone or seed and public key.

    Raises SecretError, also for a public key: it cannot sign.
    """
    if not isinstance(text, str):
        raise SecretError(
            f"a secret is text, and not a {type(text).__name__}: is the setting that it comes from set?"
        )
    if text.startswith(PREFIX_SECRET):
        material = read_base64(text.removeprefix(PREFIX_SECRET))
        _check_material(V1, material)
        return V1, material
    if text.startswith(PREFIX_PRIVATE):
        both = read_base64(text.removeprefix(PREFIX_PRIVATE))
        if len(both) == 64 and public_key(both[:32]) != both[32:]:
            raise SecretError("the two halves of this private key do not belong together")
        seed = both[:32] if len(both) in (32, 64) else both
        _check_material(V1A, seed)
        return V1A, seed
    if text.startswith(PREFIX_PUBLIC):
        raise SecretError("a public key cannot sign or act as a secret", hint="whsec_… or whsk_…")
    raise SecretError("a secret begins with whsec_ (or whsk_ to sign, whpk_ to verify)")


def public_key(seed: bytes) -> bytes:
    """The 32-byte Ed25519 public key of a 32-byte seed."""
    key: bytes = _private(seed).public_key().public_bytes_raw()
    return key


def write_public_key(seed: bytes) -> str:
    """`whpk_…`: what a receiver of `v1a` signatures is given."""
    return PREFIX_PUBLIC + _b64(public_key(seed))


def sign(secret_material: bytes, msg_id: str, timestamp: int, body: bytes) -> bytes:
    """`v1,<base64>`: the HMAC-SHA256 signature of one message. `timestamp` is in whole Unix seconds."""
    content = b"%b.%d.%b" % (msg_id.encode("ascii"), timestamp, body)
    return b"v1," + b2a_base64(hmac.digest(secret_material, content, "sha256"), newline=False)


def sign_v1a(seed: bytes, msg_id: str, timestamp: int, body: bytes) -> bytes:
    """`v1a,<base64>`: the Ed25519 signature of one message."""
    content = b"%b.%d.%b" % (msg_id.encode("ascii"), timestamp, body)
    return b"v1a," + b2a_base64(_private(seed).sign(content), newline=False)


class SigningSecret(Protocol):
    """The part of `model.Secret` that signing needs."""

    @property
    def kind(self) -> str: ...
    @property
    def material(self) -> bytes: ...


class Signer:
    """An endpoint's active secrets, prepared so that the costly part of every signature is done once.

    An HMAC is two hashes with the key mixed in. Their states after the key are kept and copied, which costs half
    of `hmac.digest` for a short body.

    secrets   active ones, chosen by the caller, newest first, at most `limits.SIGNATURES`
    key_ids   their ids as text, in the same order (`webhook-key-id`)
    """

    __slots__ = ("_inner", "_outer", "_rest", "key_ids")

    def __init__(self, secrets: Sequence[SigningSecret], key_ids: Sequence[str]) -> None:
        if not 0 < len(secrets) <= limits.SIGNATURES or len(secrets) != len(key_ids):
            raise SecretError("one to 32 secrets, each with its id")
        self.key_ids = " ".join(key_ids).encode("ascii")
        for secret in secrets:
            _check_material(secret.kind, secret.material)
        self._inner: hashlib._Hash | None = None
        self._outer: Any = None
        if secrets[0].kind == V1:
            self._inner, self._outer = _keyed(secrets[0].material)
        rest = secrets if self._inner is None else secrets[1:]
        self._rest = tuple(
            ("v1a", _private(each.material).sign) if each.kind == V1A else ("v1", _hmac(each.material))
            for each in rest
        )

    def sign(self, msg_id: bytes, timestamp: bytes, body: bytes) -> bytes:
        """The value of `webhook-signature`: one signature per secret, space-separated, in order.

        `timestamp` is the decimal text of the Unix seconds, as it stands in `webhook-timestamp`.
        """
        content = b"%b.%b.%b" % (msg_id, timestamp, body)
        if self._inner is None:
            return self._others(content)
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(content)
        outer.update(inner.digest())
        first = b"v1," + b2a_base64(outer.digest(), newline=False)
        return first if not self._rest else first + b" " + self._others(content)

    def _others(self, content: bytes) -> bytes:
        return b" ".join(
            b"%b,%b" % (kind.encode(), b2a_base64(one(content), newline=False)) for kind, one in self._rest
        )


def _keyed(key: bytes) -> tuple[hashlib._Hash, hashlib._Hash]:
    """The two SHA-256 states of RFC 2104 after the key (at most 64 bytes, the block size) was read."""
    block = key.ljust(64, b"\x00")
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in block))
    outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in block))
    return inner, outer


def _hmac(key: bytes) -> Callable[[bytes], bytes]:
    return lambda content: hmac.digest(key, content, "sha256")


def _private(seed: bytes) -> Any:
    # Imported here: verifying and signing with `v1` must not need `cryptography`.
    try:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise SecretError("v1a needs the cryptography package", hint="pip install cryptography") from None
    return Ed25519PrivateKey.from_private_bytes(seed)


def _check_material(kind: str, material: bytes) -> None:
    low, high = limits.SECRET_BYTES if kind == V1 else (32, 32)
    if kind not in (V1, V1A):
        raise SecretError("the kind of a secret is v1 or v1a")
    if not low <= len(material) <= high:
        length = f"{low} to {high}" if low != high else f"{low}"
        raise SecretError(f"a {kind} secret has {length} bytes, this one has {len(material)}")


def _b64(raw: bytes) -> str:
    return b2a_base64(raw, newline=False).decode("ascii")


def read_base64(text: str) -> bytes:
    """Strict base64; only the padding may be missing, as some issuers of secrets leave it out."""
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    try:
        raw = a2b_base64(padded.encode("ascii"), strict_mode=True)
    except (Base64Error, UnicodeError):
        raise SecretError("the part after the prefix is not base64") from None
    if len(text) > len(padded) or _b64(raw) != padded:
        raise SecretError("the part after the prefix is not base64")
    return raw
