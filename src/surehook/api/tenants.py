"""/v1/tenants"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from surehook.api import show
from surehook.api.bodies import did_you_mean, given
from surehook.api.calls import Answer, Asked, Call
from surehook.api.services import Engine
from surehook.api.shapes import ListShape, TenantShape
from surehook.core import limits
from surehook.core.errors import Problem
from surehook.core.json_text import quoted
from surehook.delivery import tenants

HINT_TENANTS = 50  # a misspelt name is compared with so many
TENANT_PATTERN = r"\A[a-z0-9_-]{1,64}\Z"
TenantId = Annotated[str, Meta(pattern=TENANT_PATTERN, description="1 to 64 of a-z, 0-9, _ and -.")]
TenantName = Annotated[
    str, Meta(min_length=1, max_length=limits.TEXT_CHARS, description="A name for people.")
]
Strict = Annotated[bool, Meta(description="Refuse events whose type is not registered.")]


class NewTenant(Struct, forbid_unknown_fields=True):
    name: TenantName
    id: TenantId | None = None
    strict: Strict = False


class TenantChange(Struct, forbid_unknown_fields=True):
    name: TenantName | UnsetType = UNSET
    strict: Strict | UnsetType = UNSET


async def create(asked: Asked) -> Answer:
    new: NewTenant = asked.body
    made = await tenants.create(asked.services.engine, tenant=new.id, name=new.name, strict=new.strict)
    return Answer(show.tenant(made), 201, {"location": f"/v1/tenants/{made.id}"})


async def list_all(asked: Asked) -> Answer:
    page = await asked.services.engine.ledger.tenants(limit=asked.limit, after=asked.after)
    return asked.page(page, show.tenant)


async def get(asked: Asked) -> Answer:
    return Answer(show.tenant(await tenants.find(asked.services.engine, _id(asked))))


async def change(asked: Asked) -> Answer:
    changed = await tenants.change(asked.services.engine, _id(asked), given(asked.body))
    return Answer(show.tenant(changed))


async def remove(asked: Asked) -> Answer:
    await tenants.remove(asked.services.engine, _id(asked))
    return Answer(None, 204)


def _id(asked: Asked) -> str:
    written = asked.path["id"]
    if not 1 <= len(written) <= limits.TENANT_CHARS:
        raise Problem("not_found", "there is no tenant with this id", status=404)
    return written


async def judge_empty(asked: Asked, answer: Answer) -> None:
    """Refuse to answer an empty list for a tenant that does not exist: its name was probably misspelt. Raises Problem.

    A list that is not empty passes, since the history of a deleted tenant stays readable.
    """
    tenant = asked.query.get("tenant")
    if tenant is not None and isinstance(answer.value, ListShape) and not answer.value.data:
        await check_known(asked.services.engine, tenant)


async def check_known(engine: Engine, tenant: str, *, field: str = "tenant") -> None:
    """Raise Problem `unknown_tenant` unless there is such a tenant."""
    if tenant in engine.directory.tenants:
        return
    await engine.current()
    known = engine.directory.tenants
    if tenant not in known:
        few = len(known) <= HINT_TENANTS
        hint = did_you_mean(tenant, sorted(known)) if known and few else "GET /v1/tenants"
        raise Problem("unknown_tenant", f"there is no tenant {quoted(tenant)}", field=field, hint=hint)


CALLS = (
    Call(
        method="POST", path="/v1/tenants", name="create_tenant", handle=create, body=NewTenant,
        about="Make a tenant. The id is yours, or is made here.", answers={201: TenantShape},
        problems=("tenant_exists",),
    ),
    Call(
        method="GET", path="/v1/tenants", name="list_tenants", handle=list_all, about="Tenants, newest first.",
        answers={200: TenantShape}, is_list=True,
    ),
    Call(
        method="GET", path="/v1/tenants/{id}", name="get_tenant", handle=get, about="One tenant.",
        answers={200: TenantShape}, problems=("not_found",),
    ),
    Call(
        method="PATCH", path="/v1/tenants/{id}", name="change_tenant", handle=change, body=TenantChange,
        about="Change a tenant.", answers={200: TenantShape}, problems=("not_found",),
    ),
    Call(
        method="DELETE", path="/v1/tenants/{id}", name="delete_tenant", handle=remove,
        about="Remove a tenant that has no endpoints and no unfinished deliveries.", answers={204: None},
        problems=("not_found", "tenant_in_use"),
    ),
)  # fmt: skip
