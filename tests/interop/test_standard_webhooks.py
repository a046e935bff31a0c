"""What we sign is accepted by foreign verifiers, and what they sign is accepted by ours, in two languages.

The foreign libraries judge by the machine's clock, so messages carry the real time. Those for Node are
installed into a temporary directory; where that cannot be done, their tests are skipped with the reason.
"""

import json
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
import standardwebhooks.webhooks
import svix.webhooks

from surehook.core import envelope, signature
from surehook.core.model import Secret
from surehook.core.signature import Signer
from surehook.verify import VerifyError, sign, verify

SECRET = signature.generate_secret(b"\xfb\xff" * 16)  # base64 with both `+` and `/`
OLD = signature.generate_secret(b"old" * 8)
EVENT = "evt_01hf3n0000aaaaaaaaaaaaaaaa"
BODY = envelope.render_body(
    id=EVENT, type="document.signed", timestamp="2026-11-21T10:46:00.123Z", tenant="acme", schema_version="1",
    data='{ "title": "Zażółć 👍", "escaped": "\\u00e9\\n" , "n": 1.0 }'.encode(),
)  # fmt: skip
PEERS = {"standardwebhooks": standardwebhooks.webhooks, "svix": svix.webhooks}
INSTALL_S, ANSWER_S = 120, 30


class Python:
    def __init__(self, name):
        self.module = PEERS[name]

    def accepts(self, secret, headers, body):
        try:
            self.module.Webhook(secret).verify(body, headers)
        except self.module.WebhookVerificationError:
            return False
        return True

    def sign(self, secret, msg_id, timestamp, body):
        at = datetime.fromtimestamp(timestamp, tz=UTC)
        return self.module.Webhook(secret).sign(msg_id, at, body.decode())


class Node:
    def __init__(self, name, directory):
        self.name, self.directory = name, directory

    def accepts(self, secret, headers, body):
        return self._ask(action="verify", secret=secret, headers=headers, body=body.decode())["accepted"]

    def sign(self, secret, msg_id, timestamp, body):
        asked = self._ask(action="sign", secret=secret, id=msg_id, timestamp=timestamp, body=body.decode())
        return asked["signature"]

    def _ask(self, **question):
        done = subprocess.run(
            ["node", "peer.mjs"],
            cwd=self.directory,
            input=json.dumps({"library": self.name, **question}),
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def node_directory(tmp_path_factory):
    """A directory in which Node finds the foreign packages."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    directory = tmp_path_factory.mktemp("node")
    shutil.copy(Path(__file__).with_name("peer.mjs"), directory)
    (directory / "package.json").write_text('{"private": true, "type": "module"}')
    command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", *PEERS]
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=INSTALL_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {', '.join(PEERS)} within {INSTALL_S} s")
    if done.returncode != 0:
        pytest.skip(f"npm could not install {', '.join(PEERS)}: {done.stderr.strip()[-200:]}")
    return directory


@pytest.fixture(params=[
    *(pytest.param(("python", name), id=f"python-{name}") for name in PEERS),
    *(pytest.param(("node", name), id=f"node-{name}", marks=pytest.mark.slow) for name in PEERS),
])  # fmt: skip
def peer(request):
    language, name = request.param
    return Python(name) if language == "python" else Node(name, request.getfixturevalue("node_directory"))


def test_a_request_signed_by_us_is_accepted(peer):
    assert peer.accepts(SECRET, sign(SECRET, EVENT, BODY), BODY)


def test_a_request_signed_by_the_delivery_engine_is_accepted_during_a_rotation(peer):
    def row(text):
        kind, material = signature.read_secret(text)
        return Secret(
            id=b"i" * 16, endpoint=b"e" * 16, kind=kind, material=material, created_at=0, expires_at=None
        )

    stamp = str(int(time.time()))
    signer = Signer([row(SECRET), row(OLD)], ["sec_new", "sec_old"])
    value = signer.sign(EVENT.encode(), stamp.encode(), BODY).decode()
    headers = {"webhook-id": EVENT, "webhook-timestamp": stamp, "webhook-signature": value}
    assert peer.accepts(SECRET, headers, BODY)
    assert peer.accepts(OLD, headers, BODY)


def test_an_ed25519_signature_beside_the_hmac_does_no_harm(peer):
    private = signature.write_secret("v1a", b"e" * 32)
    assert peer.accepts(SECRET, sign([private, SECRET], EVENT, BODY), BODY)


def test_a_request_signed_by_a_stranger_is_refused(peer):
    """The peers do look: without this, the tests above could not fail."""
    assert not peer.accepts(SECRET, sign(OLD, EVENT, BODY), BODY)
    assert not peer.accepts(SECRET, sign(SECRET, EVENT, BODY), BODY.replace(b"acme", b"acne"))


def test_a_request_signed_by_them_is_accepted_by_us(peer):
    now = int(time.time())
    value = peer.sign(SECRET, "msg_foreign", now, BODY)
    headers = {"webhook-id": "msg_foreign", "webhook-timestamp": str(now), "webhook-signature": value}
    assert verify("standard", BODY, headers, SECRET).id == "msg_foreign"
    svix_headers = {name.replace("webhook", "svix"): value for name, value in headers.items()}
    assert verify("svix", BODY, svix_headers, SECRET).id == "msg_foreign"
    with pytest.raises(VerifyError):
        verify("standard", BODY + b" ", headers, SECRET)
