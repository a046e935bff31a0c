"""Verifies a received message by Standard Webhooks 1.0.0, whatever bytes a stranger sends.

Only one kind of error leaves this file, with a machine-readable code; to the sender all of them look alike (401).
Exactly one header of each name, an id without a full stop (else two messages could sign the same bytes), a
timestamp of digits only, canonical base64, every signature compared with every key, in constant time.

Keys have an id and a span in which they hold. A message signed only by a key outside its span fails.
"""

from __future__ import annotations

import hmac
import re
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from surehook.core import limits, signature
from surehook.core.errors import SurehookError
from surehook.core.signature import SecretError

Headers = Mapping[Any, object] | Iterable[tuple[object, object]]

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII)
_TIMESTAMP = re.compile(r"[0-9]{1,12}", re.ASCII)
_JOINED = re.compile(r",\Z|,v[0-9]+[a-z]?,")  # within one part: two headers folded into one by a proxy
_STATUS = {
    "no_body": 400,
    "malformed": 422,
    "too_large": 413,
    "unsafe_json": 422,
    "bad_secret": 500,
    "bad_setup": 500,
}
_PUBLIC = {
    400: ("no_body", "There is no body."),
    401: ("bad_signature", "The message is not signed as agreed."),
    413: ("too_large", "The body is larger than this receiver takes."),
    422: ("malformed", "The body is not of the form that this receiver takes."),
    500: ("not_set_up", "This receiver is not set up to judge the message."),
}
_NAMES = {
    f"{family}-{part}": part for family in ("webhook", "svix") for part in ("id", "timestamp", "signature")
}
_P = 2**255 - 19
# y of the points of order 1, 2, 4 and 8: such a key accepts forged signatures.
_SMALL_ORDER_Y = frozenset({
    0,
    1,
    _P - 1,
    int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
    int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
})  # fmt: skip


NO_FIT = "give the secret that this very endpoint shows at its sender, and the body byte for byte as it came, before any parsing"


class VerifyError(SurehookError):
    """A message must not be believed or cannot be accepted, or a verifier was set up with an unusable key.

    code         missing_header, duplicate_header, bad_id, bad_timestamp, too_old, too_new, too_many_signatures,
                 bad_signature, key_not_valid (401: not believed); no_body (400), too_large (413), malformed,
                 unsafe_json (422);
                 bad_secret, bad_setup (500: the receiver's own fault)
    detail       one sentence for the operator
    hint         what the operator of the receiver can do, or None; not for the sender's eyes
    status       HTTP status to answer with
    public       text that may be shown to anybody; it is the same for all codes of one status
    public_code  the code that may be shown; `bad_signature` for every 401, which a surehook sender takes as key trouble
    retryable    the same event may be accepted later without a change by the sender
    """

    def __init__(self, code: str, detail: str, *, hint: str | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.hint = hint
        self.status = _STATUS.get(code, 401)
        self.public_code, self.public = _PUBLIC[self.status]
        self.retryable = self.status >= 500


class Key(Struct, frozen=True):
    """A trusted key: `secret` is `whsec_…` (v1) or `whpk_…` (v1a); it holds from `not_before` to before `not_after`
    (Unix seconds, None: no bound)."""

    secret: str
    id: str | None = None
    not_before: float | None = None
    not_after: float | None = None

    def __repr__(self) -> str:
        """Leaves the secret out: keys end up in logs."""
        return f"Key(id={self.id!r}, not_before={self.not_before!r}, not_after={self.not_after!r})"


Keys = str | Key | Sequence[str | Key]


class Verified(Struct, frozen=True):
    """A message that may be believed: its id, the Unix seconds of the attempt, and which key it was signed with."""

    id: str
    timestamp: int
    key: Key


class Verifier:
    """Trusted keys, judged once. Raises VerifyError `bad_secret` for a key that must not be trusted."""

    def __init__(self, keys: Keys, *, tolerance_s: float = limits.TOLERANCE_S) -> None:
        given = [keys] if isinstance(keys, str | Key) else keys
        if not isinstance(given, Sequence) or not given:
            raise VerifyError("bad_secret", "no key is configured", hint="a key, or a list of keys")
        self._tolerance_s = tolerance_s
        self._keys = [_trusted(key if isinstance(key, Key) else Key(key)) for key in given]

    def verify(self, headers: Headers, body: bytes | str, *, now: float) -> Verified:
        """Verify one message. `body` as received (text is taken as UTF-8), `now` in Unix seconds.

        Raises VerifyError and nothing else.
        """
        try:
            return self._verify(headers, body, now)
        except VerifyError:
            raise
        except Exception as error:  # the promise of this function: one kind of error, whatever was passed in
            raise VerifyError("bad_signature", f"unreadable message ({type(error).__name__})") from None

    def verify_read(self, headers: Mapping[str, Sequence[str]], body: bytes, *, now: float) -> Verified:
        """`verify` for headers that were read already: all values, trimmed, by names in lower case. May raise anything for
        what is no message."""
        return self._judge(_chosen(headers), body, now)

    def _verify(self, headers: Headers, body: bytes | str, now: float) -> Verified:
        return self._judge(_collected(headers), body_bytes(body), now)

    def _judge(self, found: Mapping[str, str], body: bytes, now: float) -> Verified:
        msg_id, stamp = found["id"], found["timestamp"]
        if not is_message_id(msg_id):
            raise VerifyError("bad_id", f"an id is 1 to {limits.MESSAGE_ID_CHARS} letters, digits, _ and -")
        if _TIMESTAMP.fullmatch(stamp) is None:
            raise VerifyError("bad_timestamp", "a timestamp is 1 to 12 digits")
        timestamp = int(stamp)
        signatures = _signatures(found["signature"])
        if not signatures:
            raise VerifyError(
                "bad_signature",
                "webhook-signature has nothing that can be read",
                hint="`v1,` and the HMAC in base64, or `v1a,` and an Ed25519 signature in base64",
            )
        signed = b"%b.%b.%b" % (msg_id.encode("ascii"), stamp.encode("ascii"), body)
        key = self._signer(signatures, signed, now)
        # Checked after the signature, so that a stranger learns nothing about this clock.
        if timestamp < now - self._tolerance_s:
            raise VerifyError("too_old", "signed too long ago", hint="compare both clocks")
        if timestamp > now + self._tolerance_s:
            raise VerifyError("too_new", "signed in the future", hint="compare both clocks")
        return Verified(msg_id, timestamp, key)

    def _signer(self, signatures: list[tuple[str, bytes]], signed: bytes, now: float) -> Key:
        """The key that made one of the signatures; every pair is compared, none of them ends the loop early."""
        valid: Key | None = None
        lapsed = False
        for key, kind, matches in self._keys:
            matched = False
            for version, value in signatures:
                if version == kind:
                    matched |= matches(signed, value)
            if matched and holds(key, now):
                valid = valid or key
            else:
                lapsed |= matched
        if valid is not None:
            return valid
        if lapsed:
            raise VerifyError(
                "key_not_valid", "signed by a key that does not hold now", hint="rotate the secret"
            )
        raise VerifyError(
            "bad_signature",
            f"no signature fits any of the secrets given ({len(self._keys)})",
            hint=NO_FIT,
        )


def verify(
    keys: Keys,
    headers: Headers,
    body: bytes | str,
    *,
    now: float,
    tolerance_s: float = limits.TOLERANCE_S,
) -> Verified:
    """Verify one message, with keys given as texts or `Key`s. Raises VerifyError and nothing else."""
    return Verifier(keys, tolerance_s=tolerance_s).verify(headers, body, now=now)


def is_message_id(text: str) -> bool:
    """Letters, digits, `_` and `-`, 1 to 128 of them: no full stop, which would shift what is signed."""
    return _ID.fullmatch(text) is not None


def _collected(headers: Headers) -> dict[str, str]:
    """The three values; names in any case, text or bytes."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        lowered = header_text(name).lower()
        if lowered in _NAMES:
            found.setdefault(lowered, []).append(header_text(value).strip(" \t"))
    return _chosen(found)


def _chosen(headers: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The three values, from `webhook-` or `svix-`: each name once, and both families must agree."""
    found: dict[str, str] = {}
    for name, part in _NAMES.items():
        given = headers.get(name)
        if given is not None and (len(given) > 1 or found.setdefault(part, given[0]) != given[0]):
            raise VerifyError("duplicate_header", f"the {part} is given more than once")
    for part in ("id", "timestamp", "signature"):
        if part not in found:
            raise VerifyError("missing_header", f"webhook-{part} is missing")
    return found


def body_bytes(body: object) -> bytes:
    # Anything else is refused here: `bytes(109_000_000)` would be a hundred megabytes of zeros.
    if isinstance(body, str):
        return body.encode("utf-8")
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise VerifyError(
        "bad_signature",
        f"the body is a {type(body).__name__}, and not the bytes that arrived",
        hint="take the body before anything parses it: await request.body(), request.get_data(), request.body",
    )


def header_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("latin-1")
    raise VerifyError("missing_header", "header names and values are text or bytes")


def _signatures(value: str) -> list[tuple[str, bytes]]:
    """The readable signatures of the header; parts of unknown form or version are passed over."""
    if len(value) > limits.SIGNATURE_HEADER_BYTES:
        raise VerifyError("too_many_signatures", f"over {limits.SIGNATURE_HEADER_BYTES} bytes of signatures")
    parts = value.split(" ")
    if len(parts) > limits.SIGNATURES:
        raise VerifyError("too_many_signatures", f"over {limits.SIGNATURES} signatures")
    if any(_JOINED.search(part) for part in parts):
        raise VerifyError("duplicate_header", "the signature header is joined from several")
    read: list[tuple[str, bytes]] = []
    for part in parts:
        version, comma, text = part.partition(",")
        raw = canonical_base64(text) if comma and version in (signature.V1, signature.V1A) else None
        if raw is not None:
            read.append((version, raw))
    return read


def canonical_base64(text: str) -> bytes | None:
    """The bytes of canonical base64 (standard alphabet, padded, no spare bits), else None."""
    try:
        raw = a2b_base64(text.encode("ascii"), strict_mode=True)
    except (Base64Error, UnicodeError):
        return None
    return raw if b2a_base64(raw, newline=False).decode("ascii") == text else None


def holds(key: Key, now: float) -> bool:
    after = key.not_before is None or now >= key.not_before
    return after and (key.not_after is None or now < key.not_after)


def _trusted(key: Key) -> tuple[Key, str, Any]:
    """The key with its kind and a function (signed bytes, signature) → bool."""
    try:
        if isinstance(key.secret, str) and key.secret.startswith(signature.PREFIX_PUBLIC):
            return key, signature.V1A, ed25519_matcher(public_point(key.secret))
        kind, material = signature.read_secret(key.secret)
    except SecretError as error:
        raise VerifyError("bad_secret", error.detail, hint=error.hint) from None
    except (AttributeError, TypeError):
        raise VerifyError("bad_secret", "a secret is text") from None
    if kind != signature.V1:
        raise VerifyError(
            "bad_secret", "a private key is not needed to verify", hint="give the whpk_… instead"
        )

    keyed = hmac.new(material, digestmod="sha256")  # the key's share of the work, done once

    def matches(signed: bytes, value: bytes) -> bool:
        mac = keyed.copy()
        mac.update(signed)
        return hmac.compare_digest(mac.digest(), value)

    return key, kind, matches


def public_point(text: str) -> bytes:
    """The 32 bytes of a `whpk_…` key. Raises SecretError, also for keys that would accept forgeries."""
    return checked_point(signature.read_base64(text.removeprefix(signature.PREFIX_PUBLIC)))


def checked_point(raw: bytes) -> bytes:
    """An Ed25519 public key that may be trusted: canonical, and not of small order. Raises SecretError."""
    if len(raw) != 32:
        raise SecretError(f"a public key has 32 bytes, this one has {len(raw)}")
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    if y >= _P or y in _SMALL_ORDER_Y:
        raise SecretError("this public key is of small order or not canonical: it would accept forgeries")
    return raw


def ed25519_matcher(raw: bytes) -> Any:
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise SecretError("v1a needs the cryptography package", hint="pip install cryptography") from None
    try:
        public = Ed25519PublicKey.from_public_bytes(raw)
    except ValueError:
        raise SecretError("not a point of the curve") from None

    def matches(signed: bytes, value: bytes) -> bool:
        try:
            public.verify(value, signed)
        except InvalidSignature:
            return False
        return True

    return matches
