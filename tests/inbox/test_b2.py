"""What a sender may send, row by row: one table of inputs for Standard Webhooks, each with the code it gets.

What needs storage or a server (repeats, conflicts, slow and endless bodies, methods, forged floods, schema versions) is tested
where the inbox stores and answers.
"""

import base64
import hashlib
import hmac
import json
import time

import pytest

import surehook
from surehook.core import signature
from surehook.verify import Key

NOW = 1_700_000_000
MATERIAL, OTHER = b"s" * 32, b"o" * 32
SECRET, NEW = (signature.write_secret("v1", material) for material in (MATERIAL, OTHER))
PRIVATE_SEED = b"e" * 32
PUBLIC = signature.write_public_key(PRIVATE_SEED)
BODY = b'{"type": "document.signed", "data": {"a": 1, "b": 2}}'


def sig(body=BODY, msg_id="evt_1", at=NOW, material=MATERIAL, algorithm=hashlib.sha256):
    content = f"{msg_id}.{at}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(material, content, algorithm).digest()).decode()


def headers(value=None, *, msg_id="evt_1", at=NOW, body=BODY):
    value = sig(body, msg_id, at) if value is None else value
    return {"webhook-id": msg_id, "webhook-timestamp": str(at), "webhook-signature": value}


def row(given=None, *, body=BODY, secret=SECRET, **changes):
    return {
        "headers": headers(body=body) if given is None else given,
        "body": body,
        "secret": secret,
        **changes,
    }


def at(offset):
    return row(headers(at=NOW + offset))


V1A = signature.sign_v1a(PRIVATE_SEED, "evt_1", NOW, BODY).decode()
GOOD = sig()
HEX = base64.b64decode(GOOD[3:]).hex()
WRONG = sig(material=b"w" * 32)
SVIX_OTHER = {**headers(), "svix-id": "evt_2"}
LISTED = list(headers().items())
URLSAFE = next(
    (one, body) for n in range(1000) if "+" in (one := sig(body := b'{"type":"a","n":%d}' % n)) or "/" in one
)
DEEP = b'{"type":"a","data":' + b"[" * 64 + b"]" * 64 + b"}"
VERY_DEEP = b"[" * 100_000 + b"]" * 100_000
MANY_KEYS = json.dumps({f"k{n}": n for n in range(10_001)}).encode()
MANY_VALUES = b"[" + b"0," * 499_999 + b"0]"

ACCEPTED = {
    "M01 v1": row(),
    "M02 v1a": row(headers(V1A), secret=PUBLIC),
    "M02 v1a beside v1": row(headers(f"{GOOD} {V1A}"), secret=PUBLIC),
    "M04 first of 32": row(headers(" ".join([GOOD, *[WRONG] * 31]))),
    "M04 middle of 32": row(headers(" ".join([*[WRONG] * 15, GOOD, *[WRONG] * 16]))),
    "M04 last of 32": row(headers(" ".join([*[WRONG] * 31, GOOD]))),
    "M08 upper case": row({name.upper(): value for name, value in LISTED}),
    "M08 mixed case, bytes": row([(name.title().encode(), value.encode()) for name, value in LISTED]),
    "M10 both families, equal": row({**headers(), **{n.replace("webhook", "svix"): v for n, v in LISTED}}),
    "M11 unreadable parts beside a good one": row(headers(f"v1 ,x v1,,x v1,x,y {GOOD}")),
    "M13 unknown versions beside a good one": row(headers(f"v2,AAAA V1,AAAA {GOOD}")),
    "M19 -tolerance": at(-300),
    "M19 +tolerance": at(300),
    "M23 old key inside the overlap": row(secret=[NEW, Key(SECRET, not_after=NOW + 1)]),
    "M29 replay at 1 s": row(now=NOW + 1),
    "M32 1 MiB": row(body=b'{"type":"a","data":"' + b"x" * (1024 * 1024 - 22) + b'"}'),
    "M34 null": row(body=b"null"),
    "M34 a number": row(body=b"1"),
    "M34 a list": row(body=b"[1]"),
    "M34 a text": row(body=b'"x"'),
    "M35 depth 64": row(body=b"[" * 64 + b"]" * 64),
    "M35 10,000 keys": row(body=json.dumps({f"k{n}": n for n in range(10_000)}).encode()),
    "M37 no content type": row(),
    "M37 text/plain": row({**headers(), "content-type": "text/plain"}),
    "M37 multipart/form-data": row({**headers(), "content-type": "multipart/form-data; boundary=x"}),
    "M37 charset utf-16": row({**headers(), "content-type": "application/json; charset=utf-16"}),
    "M44 year 9999": row(body=b'{"type":"a","timestamp":"9999-12-31T23:59:59Z"}'),
    "M44 year 0": row(body=b'{"type":"a","timestamp":"0000-01-01T00:00:00Z"}'),
    "M44 not a time": row(body=b'{"type":"a","timestamp":{"at":1}}'),
}  # fmt: skip

REFUSED = {
    "M05 33 signatures": (row(headers(" ".join([GOOD] * 33))), "too_many_signatures"),
    "M07 twice": (row([*LISTED, ("Webhook-Id", "evt_1")]), "duplicate_header"),
    "M07 comma-joined signature": (row(headers(f"{GOOD},{GOOD}")), "duplicate_header"),
    "M07 comma-joined id": (row({**headers(), "webhook-id": "evt_1, evt_1"}), "bad_id"),
    "M10 both families, different": (row(SVIX_OTHER), "duplicate_header"),
    **{f"M11 {junk!r}": (row(headers(junk)), "bad_signature") for junk in ("", "v1", ",x", "v1,,x", "v1,x,y")},
    "M11 'v1,'": (row(headers("v1,")), "duplicate_header"),
    **{f"M13 {v}": (row(headers(v + GOOD[2:])), "bad_signature") for v in ("v2", "V1", "v1b")},
    "M14 url-safe alphabet": (row(headers(URLSAFE[0].replace("+", "-").replace("/", "_"), body=URLSAFE[1]),
                                  body=URLSAFE[1]), "bad_signature"),
    "M14 no padding": (row(headers(GOOD.rstrip("="))), "bad_signature"),
    "M14 double padding": (row(headers(GOOD + "=")), "bad_signature"),
    "M14 junk inside": (row(headers(GOOD[:9] + "!" + GOOD[9:])), "bad_signature"),
    "M14 white space": (row(headers(GOOD[:9] + "\n" + GOOD[9:])), "bad_signature"),
    "M14 last bits": (row(headers(GOOD[:-2] + chr(ord(GOOD[-2]) + 1) + "=")), "bad_signature"),
    "M16 hex": (row(headers("v1," + HEX)), "bad_signature"),
    "M17 sha1": (row(headers(sig(algorithm=hashlib.sha1))), "bad_signature"),
    "M17 sha512": (row(headers(sig(algorithm=hashlib.sha512))), "bad_signature"),
    "M19 -tolerance-1": (at(-301), "too_old"),
    "M19 +tolerance+1": (at(301), "too_new"),
    **{f"M20 {bad!r}": (row(headers(msg_id=bad)), "bad_id") for bad in ("", "x" * 129, "a.b", "a b", "a\0", "a\nb", "é")},
    "M22 one bit": (row(body=BODY[:-2] + b"|}", given=headers()), "bad_signature"),
    "M22 one byte more": (row(headers(), body=BODY + b"\0"), "bad_signature"),
    "M22 byte order mark": (row(headers(), body=b"\xef\xbb\xbf" + BODY), "bad_signature"),
    "M22 line end": (row(headers(), body=BODY + b"\n"), "bad_signature"),
    "M22 keys reordered": (row(headers(), body=b'{"data": {"a": 1, "b": 2}, "type": "document.signed"}'), "bad_signature"),
    "M22 spaces": (row(headers(), body=BODY.replace(b" ", b"")), "bad_signature"),
    "M23 old key after the overlap": (row(secret=[NEW, Key(SECRET, not_after=NOW)]), "key_not_valid"),
    "M25 key not yet valid": (row(secret=Key(SECRET, not_before=NOW + 1)), "key_not_valid"),
    **{f"M26 {what}": (row(secret=secret), "bad_secret") for what, secret in {
        "empty": "", "prefix alone": "whsec_", "1 byte": "whsec_QQ==", "not base64": "whsec_%%%", "no prefix": "s" * 40,
        "23 bytes": "whsec_" + base64.b64encode(b"x" * 23).decode(),
        "65 bytes": "whsec_" + base64.b64encode(b"x" * 65).decode(),
        "private as public": signature.write_secret("v1a", PRIVATE_SEED), "no keys": [], "not text": [None],
        "small order": "whpk_" + base64.b64encode((1).to_bytes(32, "little")).decode(),
    }.items()},
    "M26 public key as secret": (row(headers(sig(material=base64.b64decode(PUBLIC[5:]))), secret=PUBLIC), "bad_signature"),
    "M28 another tenant's key": (row(secret=NEW), "bad_signature"),
    "M29 replay at 1 h": (row(now=NOW + 3600), "too_old"),
    "M32 1 MiB + 1": (row(body=b"x" * (1024 * 1024 + 1)), "too_large"),
    "M32 none": (row(body=b""), "no_body"),
    "M34 white space": (row(body=b" \n"), "no_body"),
    "M34 not UTF-8": (row(body=b'"\xff\xfe"'), "malformed"),
    "M34 words": (row(body=b"hello"), "malformed"),
    "M35 depth 65": (row(body=b"[" * 65 + b"]" * 65), "unsafe_json"),
    "M35 depth 67 inside": (row(body=DEEP[:-1] + b',"x":' + b"[" * 66 + b"]" * 66 + b"}"), "unsafe_json"),
    "M35 depth 100,000": (row(body=VERY_DEEP), "unsafe_json"),
    "M35 10,001 keys": (row(body=MANY_KEYS), "unsafe_json"),
    "M35 5,000 digits": (row(body=b"9" * 5000), "unsafe_json"),
    "M35 1e400": (row(body=b"1e400"), "unsafe_json"),
    "M35 NaN": (row(body=b'{"n":NaN}'), "unsafe_json"),
    "M35 Infinity": (row(body=b"[-Infinity]"), "unsafe_json"),
    "M35 a key twice": (row(body=b'{"a":1,"a":2}'), "unsafe_json"),
    "M35 a key twice, deep inside": (row(body=b'[{"x":[{"a":1,"\\u0061":2}]}]'), "unsafe_json"),
    "M35 half a surrogate pair": (row(body=b'"\\ud800"'), "unsafe_json"),
    "M35 half a million values": (row(body=MANY_VALUES), "unsafe_json"),
    "M37 form": (row(body=b"a=1&b=2", given={**headers(body=b"a=1&b=2"),
                     "content-type": "application/x-www-form-urlencoded"}), "malformed"),
}  # fmt: skip


def told(given, provider="standard"):
    now = given.get("now", NOW)
    return surehook.verify(provider, given["body"], given["headers"], given["secret"], now=now)


@pytest.mark.parametrize("name", ACCEPTED)
def test_it_is_believed(name):
    message = told(ACCEPTED[name])
    assert (message.id, message.raw) == ("evt_1", ACCEPTED[name]["body"])
    assert message.proven >= {"body", "id"}
    assert message.fresh


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(name):
    given, code = REFUSED[name]
    begun = time.process_time()  # not how busy the machine is
    with pytest.raises(surehook.VerifyError) as caught:
        told(given)
    assert caught.value.code == code
    assert (
        time.process_time() - begun < 0.5
    )  # 0.05 on a machine of one's own; what is guarded against takes seconds


def test_outside_all_that_is_not_believed_looks_alike():
    seen = {}
    for given, _ in REFUSED.values():
        with pytest.raises(surehook.VerifyError) as caught:
            told(given)
        error = caught.value
        seen.setdefault(error.status, set()).add((error.public_code, error.public, error.retryable))
    assert sorted(seen) == [400, 401, 413, 422, 500]
    assert all(len(answers) == 1 for answers in seen.values())
    assert [(status, answer[2]) for status in seen for answer in seen[status] if answer[2]] == [(500, True)]
    assert {answer[0] for answer in seen[401]} == {"bad_signature"}


def test_no_refusal_repeats_what_the_sender_or_the_operator_gave():
    for given, _ in REFUSED.values():
        with pytest.raises(surehook.VerifyError) as caught:
            told(given)
        told_all = f"{caught.value} {caught.value.public} {caught.value.hint}"
        assert SECRET not in told_all
        assert GOOD not in told_all
