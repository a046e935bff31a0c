"""The inbox as a Django view: raw bytes in, no CSRF token, no transaction but its own.

- **CSRF.** A sender has no token; its signature stands in for that.
- **ATOMIC_REQUESTS** would hold back the commit until after the view, and with it the commit of requests that were written
  together with this one and are answered already: so the view is exempt, and the store refuses to be inside a transaction.
- **The body** is read as it came, within the source's bound, which may be over DATA_UPLOAD_MAX_MEMORY_SIZE. Where a middleware
  has parsed it before (a form with files), the bytes are gone: that is a 500 and a line in the log, never a refusal for good.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse, RawPostDataException, UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from msgspec import structs

from surehook.core.sources.provider import Reply
from surehook.inbox.receive import IncomingRequest, Receiver
from surehook.inbox.safe_log import log
from surehook.inbox.wsgi import call_of, length_of

View = Callable[..., HttpResponse]


def view_of(receiver: Receiver, receive: Callable[[IncomingRequest], Reply], alias: str) -> View:
    """A view for `path("hooks/<str:source>", …)`; `alias` is the database whose ATOMIC_REQUESTS must not hold it."""

    def view(request: HttpRequest, source: str) -> HttpResponse:
        reply = _answer(receiver, receive, request, source)
        answer = HttpResponse(reply.body, status=reply.status)
        del answer["Content-Type"]
        for name, value in reply.headers:
            answer[name] = value
        return answer

    exempt: View = transaction.non_atomic_requests(using=alias)(csrf_exempt(view))
    return exempt


def _answer(
    receiver: Receiver, receive: Callable[[IncomingRequest], Reply], request: HttpRequest, source: str
) -> Reply:
    call = structs.replace(call_of(request.META), source=source.strip("/"), url=request.build_absolute_uri())
    length = length_of(request.META)
    early = receiver.before_body(call, length)
    if early is not None:
        return early
    try:
        body = _body(request, length, receiver.body_bytes(call.source))
    except RawPostDataException:
        log.error("the body of a webhook was parsed before the inbox could read it: by a middleware?")
        return receiver.refuse(call.source, "not_set_up")
    except UnreadablePostError:
        return receiver.refuse(call.source, "body_too_slow")
    if body is None:
        return receiver.refuse(call.source, "too_large")
    if length is not None and len(body) != length:
        # The sender hung up, or the server gave up waiting.
        return receiver.refuse(call.source, "body_too_slow")
    return receive(structs.replace(call, body=body))


def _body(request: HttpRequest, length: int | None, most: int) -> bytes | None:
    """The whole body, or None when it is larger than that."""
    bound: Any = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    if length is not None and (bound is None or length <= bound):
        return request.body  # which also says whether somebody was here before
    body = request.read(most + 1)
    return body if len(body) <= most else None
