"""Policies as the hot path asks them: an endpoint's own, else that of the delivery's event type, else `standard`."""

from __future__ import annotations

from typing import Literal

from surehook.core.errors import Problem
from surehook.core.outcome import succeeds
from surehook.core.policy import Policy, parse_policy
from surehook.core.profiles import PROFILES


class Plan:
    """A policy with what the hot path asks of it looked up in advance."""

    __slots__ = ("__weakref__", "delivery_header", "policy", "redirect_style", "retry_header", "success")

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.success = succeeds(policy)
        self.redirect_style: Literal["strict", "yousign"] = (
            "yousign" if policy.profile == "yousign" else "strict"
        )
        self.retry_header = policy.headers.retry_count.encode() if policy.headers.retry_count else None
        self.delivery_header = policy.headers.delivery_id.encode() if policy.headers.delivery_id else None


def stored_policy(reference: bytes) -> Policy:
    """A policy that was accepted earlier. One that the bounds of today refuse must not keep the server from
    starting: it is `standard` until it is set anew."""
    try:
        return parse_policy(reference, PROFILES)
    except Problem:
        return PROFILES["standard"]
