"""The public face of signing and verifying."""

import subprocess
import sys
import time

import pytest

from surehook.core import signature
from surehook.verify import Key, SecretError, Verifier, VerifyError, sign, verify

OLD, NEW = signature.generate_secret(b"o" * 32), signature.generate_secret(b"n" * 32)
BODY = b'{"type":"document.signed","data":{"n":1}}'
PRIVATE, PUBLIC = signature.write_secret("v1a", b"e" * 32), signature.write_public_key(b"e" * 32)


@pytest.mark.parametrize(("secret", "key"), [(NEW, NEW), (PRIVATE, PUBLIC), ([OLD, NEW, PRIVATE], [PUBLIC])])
def test_what_is_signed_is_verified(secret, key):
    headers = sign(secret, "evt_1", BODY)
    assert verify("surehook", BODY, headers, key).id == "evt_1"


def test_the_clock_is_this_machines_unless_given():
    headers = sign(NEW, "evt_1", BODY, timestamp=1000)
    assert verify("surehook", BODY, headers, NEW, now=1000).sent_at.timestamp() == 1000
    with pytest.raises(VerifyError) as caught:
        verify("surehook", BODY, headers, NEW)
    assert caught.value.code == "too_old"
    assert abs(int(sign(NEW, "evt_1", b"")["webhook-timestamp"]) - time.time()) < 60


def test_a_verifier_is_made_once_and_used_often():
    verifier = Verifier([Key(OLD, "old"), Key(NEW, "new")])
    for number in range(3):
        headers = sign(NEW, f"evt_{number}", b"body", timestamp=50)
        assert verifier.verify(headers, b"body", now=50).key.id == "new"


@pytest.mark.parametrize("msg_id", ["", "a.b", "a b", "x" * 129])
def test_an_id_that_no_receiver_would_take_is_not_signed(msg_id):
    with pytest.raises(SecretError):
        sign(NEW, msg_id, b"body")


def test_verifying_with_hmac_needs_msgspec_alone():
    """Run in a process that refuses every other installed library."""
    program = (
        "import sys\n"
        "class Wall:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('cryptography', 'httptools', 'uvloop', 'sqlalchemy', 'starlette', 'fastapi'):\n"
        "            raise ImportError('walled off: ' + name)\n"
        "sys.meta_path.insert(0, Wall())\n"
        "from surehook.verify import sign, verify, VerifyError\n"
        f"verify('surehook', {BODY!r}, sign({NEW!r}, 'evt_1', {BODY!r}), {NEW!r})\n"
        "try:\n"
        f"    verify('surehook', b'', {{}}, {PUBLIC!r})\n"
        "except VerifyError as error:\n"
        "    print(error.code, error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "bad_secret pip install cryptography\n"


def test_importing_the_package_imports_nothing_else():
    program = (
        "import sys; before = set(sys.modules); import surehook; print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "['surehook']\n"


def test_verifying_loads_no_network_no_loop_and_no_cryptography():
    program = "import sys, surehook; surehook.verify; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert "surehook.core.sources.judge" in loaded
    assert not loaded & {"asyncio", "socket", "ssl", "cryptography", "ipaddress", "json", "urllib.parse"}
