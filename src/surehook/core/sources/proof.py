"""The claims that a signature proves: computed from the record, so that they cannot differ from what is checked.

A place is covered when it is among the signed parts, or lies in the body and the body's bytes are. A checksum of the body
covers nothing, and joined form fields do not cover where one ends and the next begins. A token covers nothing: whoever
saw it once can write any message.
"""

from __future__ import annotations

from surehook.core.sources.provider import (
    Digest,
    Element,
    Field,
    First,
    Header,
    Place,
    Provider,
    Signed,
    Standard,
    Whole,
)

_STANDARD = frozenset({"webhook-id", "webhook-timestamp"})


def covers_body(provider: Provider, *, body_hash_signed: bool = False) -> bool:
    """True if the bytes of the body are signed. `body_hash_signed`: their hash stood in the signed URL."""
    scheme = provider.scheme
    if isinstance(scheme, Standard):
        return True
    if not isinstance(scheme, Signed):
        return False
    hows = {part.how for part in scheme.content if isinstance(part, Whole)}
    return "bytes" in hows or ("url_and_form" in hows and body_hash_signed)


def covers(provider: Provider, place: Place, *, body: bool) -> bool:
    """True if the value at this place is signed; `body` says whether the body is."""
    scheme = provider.scheme
    if isinstance(scheme, Standard):
        return (
            place.name.lower() in _STANDARD
            if isinstance(place, Header)
            else isinstance(place, Field | Digest | First)
        )
    if not isinstance(scheme, Signed):
        return False
    if isinstance(place, First):
        return all(covers(provider, one, body=body) for one in place.places)
    if isinstance(place, Digest):
        return place.of == "content" or body
    if isinstance(place, Field):
        # The signature itself stands for its content.
        return body or place.path in {
            one.path for one in (*scheme.content, scheme.place) if isinstance(one, Field)
        }
    signed = {(type(one), one.name.lower()) for one in scheme.content if isinstance(one, Header | Element)}
    return (type(place), place.name.lower()) in signed


def proven(provider: Provider, *, body_hash_signed: bool = False) -> frozenset[str]:
    """The parts that the scheme covers of a message in which every place has a value: for tables and docs."""
    body = covers_body(provider, body_hash_signed=body_hash_signed)
    return named(
        provider,
        body=body,
        id=provider.id,
        type=provider.type,
        time=() if provider.occurred_at is None else (provider.occurred_at.place,),
    )


def named(
    provider: Provider,
    *,
    body: bool,
    id: tuple[Place, ...],
    type: tuple[Place, ...],
    time: tuple[Place, ...],
) -> frozenset[str]:
    """The names of what is covered: `body`, and those of id, type and time whose places all are."""
    names = {"body"} if body else set()
    for name, places in (("id", id), ("type", type), ("time", time)):
        if places and all(covers(provider, place, body=body) for place in places):
            names.add(name)
    return frozenset(names)
