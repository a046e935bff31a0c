"""Conversion of values from the rooms below to the shapes of answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from msgspec import Raw, json

from surehook.core import answers, envelope, hints, ids, instants, redact, signature
from surehook.core.authentication import Authentication, Basic, Bearer, KeyHeader
from surehook.core.instants import render, render_optional
from surehook.core.model import LANES, Attempt, Endpoint, Event, EventType, Notice, Secret, Tenant
from surehook.core.policy import Policy
from surehook.core.receipt import Word
from surehook.delivery.managing import BreakerView
from surehook.delivery.replay import given_of
from surehook.ports.reading import DeliveryView, LaneCount, ReplayJob

INTERRUPTED = (
    "The sender stopped while this request may have been under way. It is sent again under the same ids, "
    "and spends no retry."
)


def tenant(seen: Tenant) -> answers.TenantOut:
    return answers.TenantOut(seen.id, seen.name, seen.strict, render(seen.created_at))


def event_type(seen: EventType) -> answers.EventTypeOut:
    return answers.EventTypeOut(
        name=seen.name,
        description=seen.description,
        schema=_raw(seen.schema),
        schema_version=seen.schema_version,
        policy=_raw(seen.policy),
        created_at=render(seen.created_at),
        schemas=_raw(seen.schemas),
    )


def endpoint(
    seen: Endpoint, made: Secret | None = None, *, breaker: answers.HeldOut | None
) -> answers.EndpointOut:
    """With the secret that was made for it just now, and its id."""
    return answers.EndpointOut(
        id=ids.text(ids.ENDPOINT, seen.id),
        tenant=seen.tenant,
        url=seen.url,
        event_types=seen.event_types,
        policy=_raw(seen.policy),
        status=seen.status,
        reason=seen.reason,
        failure_count=seen.failure_count,
        order=seen.order,
        headers=redact.configured(seen.headers),
        description=seen.description,
        created_at=render(seen.created_at),
        updated_at=render(seen.updated_at),
        secret=None if made is None else signature.write_secret(made.kind, made.material),
        method=seen.method,
        authentication=_authentication(seen.authentication),
        tls=None if seen.tls is None else answers.TlsShownOut(seen.tls.ca, seen.tls.client_certificate),
        receipts=None if seen.receipts is None else answers.WantedOut(seen.receipts.finalize_within_s),
        breaker=breaker,
        key_id=None if made is None else ids.text(ids.SECRET, made.id),
    )


def signing(secrets: Iterable[Secret]) -> list[answers.SecretOut]:
    """Newest first, and nothing of what is secret."""
    newest_first = sorted(secrets, key=lambda secret: secret.created_at, reverse=True)
    return [
        answers.SecretOut(
            render(secret.created_at), render_optional(secret.expires_at), ids.text(ids.SECRET, secret.id)
        )
        for secret in newest_first
    ]


def _authentication(seen: Authentication | None) -> answers.AuthenticationShown | None:
    """Authentication without its secrets: each type takes over the fields it names, and nothing else."""
    if isinstance(seen, Basic):
        return answers.BasicShownOut(seen.username)
    if isinstance(seen, Bearer):
        return answers.BearerShownOut()
    if isinstance(seen, KeyHeader):
        return answers.KeyHeaderShownOut(seen.header)
    if seen is None:
        return None
    return answers.ClientCredentialsShownOut(
        seen.token_url, seen.client_id, seen.scopes, seen.audience, seen.style
    )


def event(seen: Event) -> answers.EventOut:
    """`data` is cut out of the stored bytes, never written anew; null once the bytes are past their retention."""
    return answers.EventOut(
        id=ids.text(ids.EVENT, seen.id),
        tenant=seen.tenant,
        type=seen.type,
        subject=seen.subject,
        sequence=seen.sequence,
        schema_version=seen.schema_version,
        workflow_version=seen.workflow_version,
        correlation_id=seen.correlation_id,
        causation_id=seen.causation_id,
        source=seen.source,
        occurred_at=render_optional(seen.occurred_at),
        accepted_at=render(seen.accepted_at),
        deliveries=seen.fan_out,
        idempotency_key=seen.idempotency_key,
        data=Raw(envelope.split_data(seen.body)) if seen.body else None,
    )


def delivery(seen: DeliveryView) -> answers.DeliveryOut:
    return answers.DeliveryOut(
        id=ids.text(ids.DELIVERY, seen.id),
        event=ids.text(ids.EVENT, seen.event),
        endpoint=ids.text(ids.ENDPOINT, seen.endpoint),
        tenant=seen.tenant,
        type=seen.type,
        state=seen.state,
        reason=seen.reason,
        lane=LANES[seen.lane],
        attempts=seen.attempts,
        outcome=seen.outcome,
        unknown=seen.unknown,
        due_at=render_optional(seen.due_at),
        finished_at=render_optional(seen.finished_at),
        replay_of=_id(ids.DELIVERY, seen.replay_of),
        replayed_by=_id(ids.DELIVERY, seen.replayed_by),
        receipt=None if seen.receipt is None else receipt(seen.receipt),
        dismissal=None
        if seen.dismissal is None
        else answers.DismissalOut(seen.dismissal.note, render(seen.dismissal.at)),
        subject=seen.subject,
        correlation_id=seen.correlation_id,
        request_headers=_request_headers(seen),
    )


def _request_headers(seen: DeliveryView) -> dict[str, str] | None:
    return None if seen.request_headers is None else json.decode(seen.request_headers, type=dict[str, str])


def receipt(seen: Word) -> answers.ReceiptOut:
    return answers.ReceiptOut(
        stage=seen.stage,
        accepted_at=render_optional(seen.accepted_at),
        processed_at=render_optional(seen.processed_at),
        rejected_at=render_optional(seen.rejected_at),
        finalized_at=render_optional(seen.finalized_at),
        code=seen.code,
        note=seen.note,
    )


def attempt(seen: Attempt, policy: Policy | None) -> answers.AttemptOut:
    """`policy` is the present one of its endpoint; None if that is gone."""
    return answers.AttemptOut(
        id=ids.text(ids.ATTEMPT, attempt_id(seen)),
        delivery=ids.text(ids.DELIVERY, seen.delivery),
        number=seen.number,
        kind=seen.kind,
        lane=LANES[seen.lane],
        started_at=render(seen.started_at),
        outcome=seen.outcome,
        unknown=seen.unknown,
        status=seen.status,
        error=seen.error,
        hint=_hint(seen, policy),
        address=seen.address,
        timings_ms=answers.TimingsOut(
            _ms(seen.dns_us),
            _ms(seen.connect_us),
            _ms(seen.tls_us),
            _ms(seen.first_byte_us),
            _ms(seen.total_us),
        ),
        response=answers.ResponseOut(
            headers=header_object(seen.headers),
            body=seen.body.decode("utf-8", "backslashreplace") if seen.body else None,
            truncated=seen.truncated,
        ),
        next_at=render_optional(seen.next_at),
    )


def attempt_id(seen: Attempt) -> bytes:
    """The id of an attempt, which the ledger does not store: derived from what identifies the row, so the same every time."""
    named = hashlib.sha256(b"%b %d %b" % (seen.delivery, seen.number, seen.kind.encode())).digest()
    return ids.uuid7(seen.started_at, named[:10])


def header_object(block: bytes) -> dict[str, str]:
    """A stored header block as an object: names in lower case, repeats joined by a comma and a space, secrets hidden."""
    found: dict[str, str] = {}
    for line in block.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        name = name.strip().lower()
        if colon and name:
            value = value.strip()
            found[name] = f"{found[name]}, {value}" if name in found else value
    return redact.configured(found)


def notice(seen: Notice) -> answers.NoticeOut:
    return answers.NoticeOut(
        id=ids.text(ids.NOTICE, seen.id),
        at=render(seen.at),
        kind=seen.kind,
        tenant=seen.tenant,
        endpoint=_id(ids.ENDPOINT, seen.endpoint),
        delivery=_id(ids.DELIVERY, seen.delivery),
        detail=seen.detail,
    )


def replay(seen: ReplayJob) -> answers.ReplayOut:
    return answers.ReplayOut(
        id=ids.text(ids.REPLAY, seen.id),
        filter=given_of(seen),
        dry_run=seen.dry_run,
        state=seen.state,
        matched=seen.matched,
        created=seen.created,
        created_at=render(seen.created_at),
        finished_at=render_optional(seen.finished_at),
    )


def breaker(seen: BreakerView, *, parked: int) -> answers.BreakerOut:
    return answers.BreakerOut(
        tenant=seen.tenant,
        url=seen.url,
        state=seen.state,
        reason=seen.reason,
        failures=seen.failures,
        calls=seen.calls,
        window_s=_short(seen.window_s),
        opened_at=render_optional(seen.opened_at),
        probe_at=render_optional(seen.probe_at),
        parked=parked,
    )


def lane(name: str, slots: int, in_flight: int, seen: LaneCount, *, now: int) -> answers.LaneOut:
    waited_ms = 0 if seen.oldest_due_at is None else max(0, now - seen.oldest_due_at)
    return answers.LaneOut(
        name=name,
        slots=slots,
        in_flight=in_flight,
        held=seen.held,
        ready=seen.ready,
        oldest_due_s=waited_ms / instants.SECOND_MS,
        scheduled=seen.scheduled,
        parked=seen.parked,
    )


def _hint(seen: Attempt, policy: Policy | None) -> str | None:
    if seen.kind == "interrupted":
        return INTERRUPTED
    return hints.hint(seen, policy)


def _raw(stored: bytes | None) -> Raw | None:
    return None if stored is None else Raw(stored)


def _id(prefix: str, raw: bytes | None) -> str | None:
    return None if raw is None else ids.text(prefix, raw)


def _short(seconds: float | None) -> float | None:
    """600, not 600.0: as policies are written."""
    return int(seconds) if seconds is not None and seconds == int(seconds) else seconds


def _ms(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1000
