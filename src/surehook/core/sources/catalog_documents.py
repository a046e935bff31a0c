"""The providers of signatures on documents, and Standard Webhooks. docs/receiving.md has what is known of each."""

from __future__ import annotations

from surehook.core import limits
from surehook.core.sources.provider import (
    BODY,
    Bounds,
    Clock,
    EchoHeader,
    Field,
    First,
    Header,
    Ping,
    Place,
    Provider,
    Reply,
    Signed,
    Standard,
    Token,
)

_TEXT = (("content-type", "text/plain"),)
_STANDARD_ID: tuple[Place, ...] = (Header("webhook-id", ("svix-id",)),)
_STANDARD_TIME = Clock(Header("webhook-timestamp", ("svix-timestamp",)))

STANDARD = Provider(
    name="standard",
    scheme=Standard(),
    id=_STANDARD_ID,
    sent_at=_STANDARD_TIME,
    tolerance_s=limits.TOLERANCE_S,
    type=(Field("type", optional=True),),
    occurred_at=Clock(Field("timestamp"), "rfc3339"),
    data="data",
)
SUREHOOK = Provider(
    name="surehook",
    correlation=Field("correlation_id"),
    scheme=Standard(),
    id=_STANDARD_ID,
    sent_at=_STANDARD_TIME,
    tolerance_s=limits.TOLERANCE_S,
    type=(Field("type"),),
    occurred_at=Clock(Field("timestamp"), "rfc3339"),
    data="data",
)
GITLAB = Provider(
    name="gitlab",
    scheme=Standard(),
    id=_STANDARD_ID,
    sent_at=_STANDARD_TIME,
    tolerance_s=limits.TOLERANCE_S,
    type=(First((Field("object_kind"), Field("event_name"))),),
    bounds=Bounds(body_bytes=26_214_400, keys=250_000, values=1_000_000),
)
YOUSIGN = Provider(
    name="yousign",
    scheme=Signed(Header("X-Yousign-Signature-256"), (BODY,), prefix="sha256="),
    id=(Field("event_id"),),
    type=(Field("event_name"),),
    sent_at=Clock(Header("X-Yousign-Issued-At"), "s"),
    occurred_at=Clock(Field("event_time"), "s"),
    data="data",
    caveat="the signature has no age: event_time is that of the event, and the header with the time of sending is not signed",
)
DOCUSIGN = Provider(
    name="docusign",
    scheme=Signed(Header("X-DocuSign-Signature"), (BODY,), encoding="base64", numbered=True),
    id=(
        Field("data.envelopeId"),
        Field("event"),
        Field("generatedDateTime"),
        Field("data.recipientId", optional=True),
    ),
    type=(Field("event"),),
    occurred_at=Clock(Field("generatedDateTime"), "rfc3339"),
    data="data",
    volatile=(Field("retryCount"),),
    bounds=Bounds(body_bytes=26_214_400),  # may carry the documents
    caveat="there is no event id (one is made of envelope, event, time and recipient), and the signature has no age",
)
DROPBOX_SIGN = Provider(
    name="dropbox_sign",
    scheme=Signed(Field("event.event_hash"), (Field("event.event_time"), Field("event.event_type"))),
    # The hash is the same for all events of one type in one second, so the object and the signer stand beside it.
    id=(
        Field("event.event_hash"),
        First(
            (
                Field("signature_request.signature_request_id"),
                Field("template.template_id"),
                Field("account.account_id"),
            ),
            optional=True,
        ),
        Field("event.event_metadata.related_signature_id", optional=True),
    ),
    type=(Field("event.event_type"),),
    occurred_at=Clock(Field("event.event_time"), "s"),
    body="multipart",
    part="json",
    handshake=Ping("callback_test"),
    success=Reply(200, b"Hello API Event Received", _TEXT),
    must_refetch=True,
    caveat="only the event's time and type are signed: whoever saw one callback can put any document beside them",
)
ADOBE_SIGN = Provider(
    name="adobe_sign",
    scheme=Token(Header("X-AdobeSign-ClientId")),
    id=(Field("webhookNotificationId"),),
    type=(Field("event"),),
    occurred_at=Clock(Field("eventDate"), "rfc3339"),
    handshake=EchoHeader("X-AdobeSign-ClientId"),
    must_refetch=True,
    bounds=Bounds(body_bytes=11 * 1024 * 1024),  # 10 MB, as the provider limits payloads with documents
    caveat="nothing is signed: the client id is no secret; fetch the agreement, and allow only the provider's networks",
)
INSIGNER = Provider(
    name="insigner",
    scheme=Signed(Header("X-InSigner-Signature"), (BODY,), prefix="sha256="),
    id=(First((Field("id"), Header("X-InSigner-Delivery-Id"))),),
    type=(Field("event"),),
    occurred_at=Clock(Header("X-InSigner-Timestamp"), "s"),
    data="data",
    caveat="time and delivery id are headers that are not signed: an old copy passes with new ones",
)

SIGNING = (STANDARD, SUREHOOK, GITLAB, YOUSIGN, DOCUSIGN, DROPBOX_SIGN, ADOBE_SIGN, INSIGNER)
