"""/v1/policies"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.api.policy_schema import PolicyDocument, PreviewDocument
from surehook.core.answers import PreviewOut
from surehook.core.errors import Problem
from surehook.core.json_value import JsonObject
from surehook.core.policy import parse_policy, policy_json
from surehook.core.preview import timeline
from surehook.core.profiles import PROFILES


class Preview(Struct, forbid_unknown_fields=True):
    policy: Annotated[
        str | JsonObject, Meta(description="A profile's name, or an object that starts from one.")
    ]


async def list_all(asked: ApiRequest) -> ApiAnswer:
    """All profiles in their own order. The list is short and constant, so one page is enough, cut by the limit."""
    names = list(PROFILES)
    start = 0 if asked.after is None else int.from_bytes(asked.after, "big")
    end = min(len(names), start + asked.limit)
    following = end.to_bytes(1, "big") if end < len(names) else None
    return asked.rows([policy_json(PROFILES[name]) for name in names[start:end]], following)


async def get(asked: ApiRequest) -> ApiAnswer:
    policy = PROFILES.get(asked.path["name"])
    if policy is None:
        raise Problem(
            "not_found", "there is no policy with this name", hint="known: " + ", ".join(PROFILES), status=404
        )
    return ApiAnswer(policy_json(policy))


async def preview(asked: ApiRequest) -> ApiAnswer:
    """The schedule of a policy, computed in turns: a hundred steps take half a millisecond."""
    given = asked.body.policy
    return ApiAnswer(await asked.services.turns.once(asked.caller, partial(_preview, given)))


def _preview(given: str | JsonObject) -> PreviewOut:
    policy = parse_policy(given, PROFILES)
    return PreviewOut(policy_json(policy), timeline(policy))


OPERATIONS = (
    Operation(
        method="GET", path="/v1/policies", name="list_policies", handle=list_all, about="The named policies.",
        answers={200: PolicyDocument}, is_list=True, is_kept=True,
    ),
    Operation(
        method="GET", path="/v1/policies/{name}", name="get_policy", handle=get, about="One named policy.",
        answers={200: PolicyDocument}, problems=("not_found",),
    ),
    Operation(
        method="POST", path="/v1/policies/preview", name="preview_policy", handle=preview, body=Preview,
        about="A policy with its timeline: what a delivery that never succeeds would live through.",
        detail="Waits are without jitter; `jitter_s` is what jitter may add to them.",
        answers={200: PreviewDocument}, problems=("invalid_policy", "unknown_policy"),
    ),
)  # fmt: skip
