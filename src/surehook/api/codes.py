"""Every code that a refusal can have, with its status and its title; docs/api.md and the OpenAPI document print them."""

from __future__ import annotations

# code → (status, title)
CODES: dict[str, tuple[int, str]] = {
    # who is calling
    "unauthorized": (401, "No valid API key"),
    "bad_signature": (401, "Not signed as agreed"),
    # the request as bytes: these end the connection
    "bad_request": (400, "Not a request that can be read"),
    "target_too_long": (414, "The address is too long"),
    "head_too_large": (431, "The headers are too large"),
    "http_version": (505, "This version of HTTP is not spoken"),
    "request_timeout": (408, "The request came too slowly"),
    "too_many_connections": (503, "Too many connections are open"),
    "too_many_bytes": (503, "Too many bytes are being read"),
    # what is asked for
    "not_found": (404, "There is no such thing"),
    "method_not_allowed": (405, "This address has no such method"),
    "unknown_delivery": (404, "None of these deliveries is known"),
    "served_elsewhere": (421, "Another process serves this"),
    "bad_id": (422, "Not an id"),
    # the body as bytes
    "body_too_large": (413, "The body is too large"),
    "unsupported_encoding": (415, "Bodies are read uncompressed"),
    "invalid_json": (400, "The body is not JSON"),
    "too_deep": (422, "Nested too deeply"),
    "duplicate_key": (422, "A key is given twice"),
    "bad_text": (422, "Text that cannot be stored"),
    "number_out_of_range": (422, "A number is out of range"),
    # the body as values
    "missing_field": (422, "A field is missing"),
    "unknown_field": (422, "There is no such field"),
    "wrong_type": (422, "A value has the wrong type"),
    "out_of_range": (422, "A value is out of range"),
    "not_available": (422, "Not available in this version"),
    "order_not_available": (422, "Ordered delivery is not available in this version"),
    # the query
    "unknown_parameter": (422, "There is no such query parameter"),
    "repeated_parameter": (422, "A query parameter is given twice"),
    "bad_parameter": (422, "A query parameter has an unusable value"),
    "bad_cursor": (422, "Not a cursor of this list"),
    "bad_time": (422, "Not an instant"),
    # values with a meaning
    "invalid_event_type": (422, "Not an event type"),
    "invalid_filter": (422, "Not an event type filter"),
    "invalid_header": (422, "An endpoint cannot have this header"),
    "invalid_authentication": (422, "An endpoint cannot have this authentication"),
    "authentication_conflict": (422, "A header is set twice"),
    "invalid_tls": (422, "An endpoint cannot have this TLS"),
    "invalid_policy": (422, "Not a policy"),
    "invalid_schema": (422, "Not a JSON Schema that can be used"),
    "unknown_policy": (422, "There is no such policy"),
    "unknown_tenant": (422, "There is no such tenant"),
    "unknown_event_type": (422, "The event type is not registered"),
    "address_forbidden": (422, "The address may not be called"),
    "url_syntax": (422, "Not a URL that can be called"),
    "url_scheme": (422, "The scheme may not be called"),
    "https_required": (422, "Plain http may not be called"),
    "url_userinfo": (422, "User info in a URL is not accepted"),
    "url_fragment": (422, "A fragment in a URL is not accepted"),
    "url_host_syntax": (422, "The host cannot be read"),
    "url_host_ambiguous": (422, "The host can be read in two ways"),
    "url_host_name": (422, "The host name may not be called"),
    "url_port": (422, "The port may not be called"),
    "url_too_long": (422, "The URL is too long"),
    "empty_filter": (422, "A replay needs a filter"),
    "invalid_receipts": (422, "Not a message of receipts"),
    # the state of things
    "tenant_exists": (409, "The tenant exists already"),
    "tenant_in_use": (409, "The tenant is in use"),
    "event_type_exists": (409, "The event type exists already"),
    "delivery_sending": (409, "The delivery is being sent"),
    "delivery_finished": (409, "The delivery has finished"),
    "not_a_dead_letter": (409, "Not a dead letter"),
    "endpoint_gone": (409, "The endpoint is gone"),
    "event_gone": (409, "The event is gone"),
    "too_many_endpoints": (409, "The tenant has too many endpoints"),
    "too_many_secrets": (409, "Too many secrets are active"),
    "too_many_schemas": (409, "The event types have too many schemas"),
    "too_many_replays": (409, "Too many replays are running"),
    # events on their way in
    "idempotency_conflict": (409, "The idempotency key was used for another event"),
    "event_id_conflict": (409, "The event id was used for another event"),
    "unknown_schema_version": (422, "The event type has no such version"),
    "schema_too_costly": (422, "The schema asks too much of this data"),
    "schema_mismatch": (422, "The data is not as its schema says"),
    "invalid_idempotency_key": (422, "Not an idempotency key"),
    "idempotency_key_not_here": (422, "A batch has no idempotency key of its own"),
    "event_id_ahead": (422, "The event id is from the future"),
    "event_id_too_old": (422, "The event id is older than events are kept"),
    "too_long": (422, "A text is too long"),
    "too_many_events": (422, "Too many events in a batch"),
    "unstorable": (422, "The event cannot be stored"),
    # us
    "not_ready": (503, "Not ready"),
    "overloaded": (503, "Too much is waiting"),
    "tenant_overloaded": (429, "Too much of this tenant or key is waiting"),
    "too_many_calls": (429, "Too many outgoing calls are under way"),
    "disk_full": (503, "The disk is at its floor"),
    "ledger_unavailable": (503, "The ledger cannot answer now"),
    "outcome_unknown": (503, "The ledger went away while it wrote"),
    "internal": (500, "A defect of surehook"),
}


def status_of(code: str, otherwise: int = 422) -> int:
    return CODES[code][0] if code in CODES else otherwise
