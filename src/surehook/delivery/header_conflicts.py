"""A header has one source: the policy that holds for a delivery must not name one that its endpoint sets itself.

Judged whenever either side changes: an endpoint's headers, authentication, policy or event types, and the policy of an
event type, which holds for the endpoints without one of their own. Changes at the same moment on two nodes, and what was
stored before this was judged, are left to `request.header_lines`, which never sends a name twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from surehook.core import authentication, ids
from surehook.core.authentication import Authentication
from surehook.core.errors import Problem
from surehook.core.model import Endpoint
from surehook.core.policy import parse_policy
from surehook.core.policy_parts import HeaderNames
from surehook.core.profiles import PROFILES
from surehook.core.subscription import wants
from surehook.delivery.managing import Manager
from surehook.delivery.plans import stored_policy

SLICE = 5_000  # endpoints looked at between two turns of the loop: some milliseconds
FIELDS = frozenset({"headers", "authentication", "policy", "event_types"})


def check_endpoint(manager: Manager, given: Mapping[str, object], before: Endpoint | None) -> None:
    """Judge the given fields together with those that stay. Raises Problem `authentication_conflict`."""
    if not given.keys() & FIELDS:
        return

    def now(field: str) -> Any:
        return given[field] if field in given or before is None else getattr(before, field)

    shown, headers = now("authentication"), now("headers")
    for source, names in _policies(manager, now("policy"), now("event_types")):
        found = _conflict(names, shown, headers)
        if found is None:
            continue
        key, name = found
        if "policy" in given and given["policy"] is not None:
            field = f"policy.headers.{key}"
        elif "authentication" in given and authentication.header_name(shown) == name.lower():
            field = "authentication"
        else:
            field = next((each for each in ("headers", "policy", "event_types") if each in given), "headers")
        raise Problem(
            "authentication_conflict",
            f"{source} puts its {key} under {name}, which the endpoint sets itself",
            field=field,
            hint=f"another name or null for headers.{key} of the policy, or leave {name} out of the endpoint",
        )


async def check_event_type(manager: Manager, event_type: str, policy: bytes) -> None:
    """Judge an event type's policy against the endpoints that it would hold for. Raises Problem."""
    names = parse_policy(policy, PROFILES).headers
    if names == HeaderNames():
        return
    await manager.current()
    routes = list(manager.directory.routes.values())
    for place, route in enumerate(routes, 1):
        endpoint = route.endpoint
        found = None
        if endpoint.policy is None and wants(endpoint.event_types, event_type):
            found = _conflict(names, endpoint.authentication, endpoint.headers)
        if found is not None:
            key, name = found
            raise Problem(
                "authentication_conflict",
                f"the endpoint {ids.text(ids.ENDPOINT, endpoint.id)} takes this type and sets {name} itself",
                field=f"policy.headers.{key}",
                hint="another name, or give the endpoint a policy of its own",
            )
        if place % SLICE == 0:
            await manager.clock.sleep(0)


def _policies(
    manager: Manager, own: bytes | None, event_types: tuple[str, ...]
) -> Iterator[tuple[str, HeaderNames]]:
    """The header names of every policy that may hold for the endpoint, each with whose it is."""
    if own is not None:
        yield "the policy", stored_policy(own).headers
        return
    for event_type, names in manager.directory.header_names():
        if wants(event_types, event_type):
            yield f"the policy of the event type {event_type}", names


def _conflict(
    names: HeaderNames, shown: Authentication | None, headers: Mapping[str, str]
) -> tuple[str, str] | None:
    """The first name of the policy that the endpoint sets itself, after its key."""
    own = {name.lower() for name in headers} | {authentication.header_name(shown)}
    for key, name in (("retry_count", names.retry_count), ("delivery_id", names.delivery_id)):
        if name is not None and name.lower() in own:
            return key, name
    return None
