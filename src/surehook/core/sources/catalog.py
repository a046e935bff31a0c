"""The providers by name. For a source of your own define a `Provider`; `hmac_provider` and `bearer_provider` are short forms."""

from __future__ import annotations

from typing import Literal

from surehook.core.sources.catalog_documents import GITLAB, SIGNING
from surehook.core.sources.provider import (
    BODY,
    Bounds,
    Clock,
    Digest,
    EchoField,
    EchoQuery,
    Element,
    Field,
    First,
    HashField,
    Header,
    Known,
    Place,
    Provider,
    Signed,
    Token,
    Whole,
)

_LARGE = Bounds(body_bytes=26_214_400, keys=250_000, values=1_000_000)  # GitHub and GitLab send up to 25 MB
_TWILIO_CAVEAT = (
    "the fields of a form are signed joined, without a mark between them: fields may be cut anew. "
    "The URL must be the one that the sender called"
)


def hmac_provider(
    name: str,
    *,
    header: str = "X-Signature",
    algorithm: Literal["hmac-sha256", "hmac-sha512", "hmac-sha1"] = "hmac-sha256",
    encoding: Literal["hex", "base64"] = "hex",
    prefix: str = "",
    id: tuple[Place, ...] = (Digest("body"),),
    type: tuple[Place, ...] = (Field("type", optional=True),),
) -> Provider:
    """An HMAC of the body in one header. Without an id of the sender's, equal bodies are one event."""
    scheme = Signed(Header(header), (BODY,), algorithm, encoding, prefix)
    return Provider(name=name, scheme=scheme, id=id, type=type, caveat="the signature has no age")


def bearer_provider(
    name: str,
    *,
    header: str = "Authorization",
    prefix: str = "Bearer ",
    id: tuple[Place, ...] = (Digest("body"),),
    type: tuple[Place, ...] = (Field("type", optional=True),),
) -> Provider:
    """A token in one header, and nothing signed."""
    return Provider(
        name=name,
        scheme=Token(Header(header), prefix),
        id=id,
        type=type,
        caveat="nothing is signed: whoever saw the token once can write any message",
    )


def _twilio(name: str, algorithm: Literal["hmac-sha1", "hmac-sha256"]) -> Provider:
    return Provider(
        name=name,
        scheme=Signed(
            Header("X-Twilio-Signature"), (Whole("url_and_form"),), algorithm=algorithm, encoding="base64"
        ),
        id=(Digest("content"),),
        type=(First((Field("MessageStatus"), Field("CallStatus"), Field("SmsStatus")), optional=True),),
        body="form",
        caveat=_TWILIO_CAVEAT,
    )


_OTHERS = (
    Provider(
        name="stripe",
        scheme=Signed(Header("Stripe-Signature"), (Element("t"), ".", BODY), elements=(",", "v1")),
        id=(Field("id"),),
        type=(Field("type"),),
        sent_at=Clock(Element("t")),
        occurred_at=Clock(Field("created")),
        tolerance_s=300,
        data="data",
        volatile=(Field("pending_webhooks"),),  # how many receivers have not answered yet
    ),
    Provider(
        name="github",
        scheme=Signed(Header("X-Hub-Signature-256"), (BODY,), prefix="sha256="),
        # The delivery's id is the same for all hooks of one event.
        id=(Header("X-GitHub-Delivery"), Header("X-GitHub-Hook-ID", optional=True)),
        type=(Header("X-GitHub-Event"), Field("action", optional=True)),
        bounds=_LARGE,
        caveat="delivery id and event name are headers that are not signed, and the signature has no age",
    ),
    Provider(
        name="gitlab_token",
        scheme=Token(Header("X-Gitlab-Token")),
        id=(Header("Idempotency-Key"),),
        type=GITLAB.type,
        bounds=_LARGE,
        caveat="nothing is signed: prefer gitlab, with a signing token",
    ),
    Provider(
        name="shopify",
        scheme=Signed(Header("X-Shopify-Hmac-SHA256"), (BODY,), encoding="base64"),
        # One act of a merchant has one event id under several topics.
        id=(Header("X-Shopify-Event-Id"), Header("X-Shopify-Topic")),
        type=(Header("X-Shopify-Topic"),),
        occurred_at=Clock(Header("X-Shopify-Triggered-At"), "rfc3339"),
        caveat="event id, topic and time are headers that are not signed, and the signature has no age",
    ),
    Provider(
        name="slack",
        scheme=Signed(
            Header("X-Slack-Signature"),
            ("v0:", Header("X-Slack-Request-Timestamp"), ":", BODY),
            prefix="v0=",
        ),
        id=(Field("event_id"),),
        type=(First((Field("event.type"), Field("type"))),),
        sent_at=Clock(Header("X-Slack-Request-Timestamp")),
        occurred_at=Clock(Field("event_time")),
        tolerance_s=300,
        data="event",
        handshake=EchoField("url_verification", "challenge"),
    ),
    _twilio("twilio", "hmac-sha1"),
    _twilio("twilio_shared_key", "hmac-sha256"),
    Provider(
        name="paypal",
        scheme=Signed(
            Header("PayPal-Transmission-Sig"),
            (
                Header("PayPal-Transmission-Id"),
                "|",
                Header("PayPal-Transmission-Time"),
                "|",
                Known("webhook_id"),
                "|",
                Whole("crc32"),
            ),
            algorithm="rsa-sha256",
            encoding="base64",
        ),
        id=(Field("id"),),
        type=(Field("event_type"),),
        sent_at=Clock(Header("PayPal-Transmission-Time"), "rfc3339"),
        occurred_at=Clock(Field("create_time"), "rfc3339"),
        data="resource",
        must_refetch=True,
        caveat="only a checksum of the body is signed, and a body with the same checksum is easily made",
    ),
    Provider(
        name="sendgrid",
        scheme=Signed(
            Header("X-Twilio-Email-Event-Webhook-Signature"),
            (Header("X-Twilio-Email-Event-Webhook-Timestamp"), BODY),
            algorithm="ecdsa-p256-sha256",
            encoding="base64",
        ),
        id=(Field("sg_event_id"),),
        type=(Field("event"),),
        sent_at=Clock(Header("X-Twilio-Email-Event-Webhook-Timestamp")),
        occurred_at=Clock(Field("timestamp")),
        batch=True,
        caveat="the time of sending is signed, but its age is not checked unless a tolerance is given: the provider names none",
    ),
    Provider(
        name="paddle",
        scheme=Signed(Header("Paddle-Signature"), (Element("ts"), ":", BODY), elements=(";", "h1")),
        id=(Field("event_id"),),
        type=(Field("event_type"),),
        sent_at=Clock(Element("ts")),
        occurred_at=Clock(Field("occurred_at"), "rfc3339"),
        tolerance_s=300,
        data="data",
        volatile=(Field("notification_id"),),  # another one for each replay of an event
    ),
    Provider(
        name="linear",
        scheme=Signed(Header("Linear-Signature"), (BODY,)),
        id=(Header("Linear-Delivery"),),
        type=(Field("type"), Field("action", optional=True)),
        sent_at=Clock(Field("webhookTimestamp"), "ms"),
        occurred_at=Clock(Field("createdAt"), "rfc3339"),
        tolerance_s=60,
        data="data",
        volatile=(Field("webhookTimestamp"),),
        caveat="the delivery id is a header that is not signed",
    ),
    Provider(
        name="meta",
        scheme=Signed(Header("X-Hub-Signature-256"), (BODY,), prefix="sha256="),
        id=(Digest("body"),),
        type=(Field("object"),),
        occurred_at=Clock(Field("entry.0.time")),
        handshake=EchoQuery("hub.challenge", "hub.verify_token", ("hub.mode", "subscribe")),
        caveat="there is no event id (equal bodies are one event), and the signature has no age",
    ),
    Provider(
        name="zoom",
        scheme=Signed(
            Header("x-zm-signature"),
            ("v0:", Header("x-zm-request-timestamp"), ":", BODY),
            prefix="v0=",
        ),
        id=(Digest("body"),),
        type=(Field("event"),),
        sent_at=Clock(Header("x-zm-request-timestamp")),
        occurred_at=Clock(Field("event_ts"), "ms"),
        tolerance_s=300,
        data="payload",
        handshake=HashField(
            "endpoint.url_validation", "payload.plainToken", ("plainToken", "encryptedToken")
        ),
        caveat="there is no event id: equal bodies are one event",
    ),
    hmac_provider("hmac"),
    bearer_provider("bearer"),
)

PROVIDERS: dict[str, Provider] = {one.name: one for one in (*SIGNING, *_OTHERS)}
PROVIDERS["svix"] = PROVIDERS["standard"]  # the same under its maker's name


def provider_named(name: str) -> Provider | None:
    """The provider of this name, or None."""
    return PROVIDERS.get(name)
