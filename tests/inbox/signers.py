"""Each provider's scheme written a second time, by hand from its documentation and without a line of the product.

A signer takes body, secret and the time in Unix seconds, and gives headers (and, where the signature stands in it, the body).
"""

import base64
import hashlib
import hmac
import json
import zlib
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NOW = 1_700_000_000
SECRET = "a secret of thirty two characters"
WHSEC = "whsec_" + base64.b64encode(b"s" * 32).decode()
URL = "https://example.com/hooks/twilio?tenant=acme"
RSA = rsa.generate_private_key(65537, 2048)
P256 = ec.generate_private_key(ec.SECP256R1())
ED = Ed25519PrivateKey.from_private_bytes(b"e" * 32)


def pem(private):
    return (
        private.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def der(private):
    return base64.b64encode(
        private.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    ).decode()


def hex_of(secret, content, algorithm=hashlib.sha256):
    return hmac.new(secret.encode(), content, algorithm).hexdigest()


def base64_of(secret, content, algorithm=hashlib.sha256):
    return base64.b64encode(hmac.new(secret.encode(), content, algorithm).digest()).decode()


def rfc3339(at):
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def standard(body, secret, at, prefix="webhook"):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = b"msg_1." + str(at).encode() + b"." + body
    value = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return {f"{prefix}-id": "msg_1", f"{prefix}-timestamp": str(at), f"{prefix}-signature": value}


def stripe(body, secret, at):
    return {"Stripe-Signature": f"t={at},v1={hex_of(secret, f'{at}.'.encode() + body)},v0=00"}


def github(body, secret, at):
    return {
        "X-Hub-Signature-256": "sha256=" + hex_of(secret, body),
        "X-GitHub-Delivery": "72d3162e",
        "X-GitHub-Event": "issues",
    }


def gitlab_token(body, secret, at):
    return {"X-Gitlab-Token": secret, "Idempotency-Key": "idem_1", "X-Gitlab-Event": "Push Hook"}


def shopify(body, secret, at):
    return {
        "X-Shopify-Hmac-SHA256": base64_of(secret, body),
        "X-Shopify-Topic": "orders/create",
        "X-Shopify-Event-Id": "98880550",
        "X-Shopify-Triggered-At": rfc3339(at),
    }


def slack(body, secret, at):
    value = "v0=" + hex_of(secret, b"v0:%d:" % at + body)
    return {"X-Slack-Signature": value, "X-Slack-Request-Timestamp": str(at)}


def zoom(body, secret, at):
    return {
        "x-zm-signature": "v0=" + hex_of(secret, b"v0:%d:" % at + body),
        "x-zm-request-timestamp": str(at),
    }


def twilio(body, secret, at, algorithm=hashlib.sha1):
    fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
    content = URL + "".join(name + fields[name] for name in sorted(fields))
    return {"X-Twilio-Signature": base64_of(secret, content.encode(), algorithm)}


def twilio_shared_key(body, secret, at):
    return twilio(body, secret, at, hashlib.sha256)


def paypal(body, secret, at):
    content = f"tid-1|{rfc3339(at)}|WH-ID-1|{zlib.crc32(body)}".encode()
    value = base64.b64encode(RSA.sign(content, padding.PKCS1v15(), hashes.SHA256())).decode()
    return {
        "PAYPAL-TRANSMISSION-ID": "tid-1",
        "PAYPAL-TRANSMISSION-TIME": rfc3339(at),
        "PAYPAL-TRANSMISSION-SIG": value,
    }


def sendgrid(body, secret, at):
    value = base64.b64encode(P256.sign(str(at).encode() + body, ec.ECDSA(hashes.SHA256()))).decode()
    return {
        "X-Twilio-Email-Event-Webhook-Signature": value,
        "X-Twilio-Email-Event-Webhook-Timestamp": str(at),
    }


def paddle(body, secret, at):
    return {"Paddle-Signature": f"ts={at};h1={hex_of(secret, b'%d:' % at + body)}"}


def linear(body, secret, at):
    return {"Linear-Signature": hex_of(secret, body), "Linear-Delivery": "234d1a4e"}


def yousign(body, secret, at):
    return {
        "X-Yousign-Signature-256": "sha256=" + hex_of(secret, body),
        "X-Yousign-Issued-At": str(at),
        "X-Yousign-Retry": "0",
    }


def docusign(body, secret, at):
    return {
        "X-DocuSign-Signature-1": base64_of("the key of somebody else", body),
        "X-DocuSign-Signature-2": base64_of(secret, body),
        "X-Authorization-Digest": "HMACSHA256",
    }


def dropbox_sign(body, secret, at):
    return {"Content-Type": 'multipart/form-data; boundary="xXx"'}


def dropbox_sign_body(secret, at, type="signature_request_signed", request="sr_1"):
    event = {
        "event_time": str(at),
        "event_type": type,
        "event_hash": hex_of(secret, f"{at}{type}".encode()),
        "event_metadata": {"related_signature_id": "sig_1"},
    }
    text = json.dumps({"event": event, "signature_request": {"signature_request_id": request}})
    return (
        '--xXx\r\nContent-Disposition: form-data; name="json"\r\n'
        f"Content-Type: application/json\r\n\r\n{text}\r\n--xXx--\r\n"
    ).encode()


def adobe_sign(body, secret, at):
    return {"X-AdobeSign-ClientId": secret}


def insigner(body, secret, at):
    return {
        "X-InSigner-Signature": "sha256=" + hex_of(secret, body),
        "X-InSigner-Timestamp": str(at),
        "X-InSigner-Delivery-Id": "del_1",
    }


def meta(body, secret, at):
    return {"X-Hub-Signature-256": "sha256=" + hex_of(secret, body)}


def generic_hmac(body, secret, at):
    return {"X-Signature": hex_of(secret, body)}


def bearer(body, secret, at):
    return {"Authorization": "Bearer " + secret}


def _json(**fields):
    return json.dumps(fields).encode()


# provider: (signer, secret to sign with, key to verify with, body, id or None, type, options of verify)
SIGNERS = {
    "standard": (standard, WHSEC, WHSEC, _json(type="a.b", timestamp=rfc3339(NOW), data={"n": 1}), "msg_1", "a.b", {}),
    "surehook": (standard, WHSEC, WHSEC, _json(type="a.b", timestamp=rfc3339(NOW), data={"n": 1}), "msg_1", "a.b", {}),
    "gitlab": (standard, WHSEC, WHSEC, _json(object_kind="push"), "msg_1", "push", {}),
    "stripe": (stripe, SECRET, SECRET, _json(id="evt_1", type="a.b", created=NOW, data={"n": 1}), "evt_1", "a.b", {}),
    "github": (github, SECRET, SECRET, _json(action="opened"), "72d3162e", "issues.opened", {}),
    "gitlab_token": (gitlab_token, SECRET, SECRET, _json(object_kind="push"), "idem_1", "push", {}),
    "shopify": (shopify, SECRET, SECRET, _json(id=820982911946154508), "98880550:orders/create", "orders/create", {}),
    "slack": (slack, SECRET, SECRET, _json(event_id="Ev1", event_time=NOW, event={"type": "x"}), "Ev1", "x", {}),
    "twilio": (twilio, SECRET, SECRET, b"To=%2B1&MessageStatus=sent&Body=", None, "sent", {"url": URL}),
    "twilio_shared_key": (twilio_shared_key, SECRET, SECRET, b"CallStatus=ringing&A=1", None, "ringing", {"url": URL}),
    "paypal": (paypal, "", pem(RSA), _json(id="WH-1", event_type="A.B", resource={"n": 1}), "WH-1", "A.B",
               {"known": {"webhook_id": "WH-ID-1"}}),
    "sendgrid": (sendgrid, "", der(P256), b'[{"sg_event_id":"e1","event":"open","timestamp":1700000000}]', None, None, {}),
    "paddle": (paddle, SECRET, SECRET, _json(event_id="evt_1", event_type="a.b", data={"n": 1}), "evt_1", "a.b", {}),
    "linear": (linear, SECRET, SECRET, _json(action="create", type="Issue", webhookTimestamp=NOW * 1000), "234d1a4e",
               "Issue.create", {}),
    "yousign": (yousign, SECRET, SECRET, _json(event_id="b6c6", event_name="a.b", event_time="1699999000"), "b6c6", "a.b", {}),
    "docusign": (docusign, SECRET, SECRET,
                 _json(event="envelope-sent", generatedDateTime="2023-11-14T22:13:20.0430000Z", data={"envelopeId": "e-1"}),
                 "e-1:envelope-sent:2023-11-14T22%3A13%3A20.0430000Z", "envelope-sent", {}),
    "dropbox_sign": (dropbox_sign, SECRET, SECRET, dropbox_sign_body(SECRET, NOW), None, "signature_request_signed", {}),
    "adobe_sign": (adobe_sign, SECRET, SECRET, _json(webhookNotificationId="n-1", event="AGREEMENT_CREATED"), "n-1",
                   "AGREEMENT_CREATED", {}),
    "insigner": (insigner, SECRET, SECRET, _json(event="document.completed", data={"n": 1}), "del_1", "document.completed", {}),
    "meta": (meta, SECRET, SECRET, _json(object="page", entry=[{"time": NOW}]), None, "page", {}),
    "zoom": (zoom, SECRET, SECRET, _json(event="meeting.started", event_ts=NOW * 1000, payload={"n": 1}), None,
             "meeting.started", {}),
    "hmac": (generic_hmac, SECRET, SECRET, _json(type="a.b"), None, "a.b", {}),
    "bearer": (bearer, SECRET, SECRET, _json(type="a.b"), None, "a.b", {}),
}  # fmt: skip
