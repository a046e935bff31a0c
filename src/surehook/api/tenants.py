"""/v1/tenants"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from surehook.api import show
from surehook.api.bodies import did_you_mean, given
from surehook.api.operations import ApiAnswer, ApiRequest, Operation
from surehook.api.services import ManagementEngine
from surehook.core import limits
from surehook.core.answers import ListOut, TenantOut
from surehook.core.errors import Problem
from surehook.core.json_text import quoted
from surehook.delivery import tenants

HINT_TENANTS = 50  # a misspelt name is compared with so many
TenantId = Annotated[str, Meta(pattern=limits.TENANT_PATTERN, description="1 to 64 of a-z, 0-9, _ and -.")]
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


async def create(asked: ApiRequest) -> ApiAnswer:
    new: NewTenant = asked.body
    made = await tenants.create(asked.services.engine, tenant=new.id, name=new.name, strict=new.strict)
    return ApiAnswer(show.tenant(made), 201, {"location": f"/v1/tenants/{made.id}"})


async def list_all(asked: ApiRequest) -> ApiAnswer:
    page = await asked.services.engine.ledger.tenants(limit=asked.limit, after=asked.after)
    return asked.page(page, show.tenant)


async def get(asked: ApiRequest) -> ApiAnswer:
    return ApiAnswer(show.tenant(await tenants.find(asked.services.engine, _id(asked))))


async def change(asked: ApiRequest) -> ApiAnswer:
    changed = await tenants.change(asked.services.engine, _id(asked), given(asked.body))
    return ApiAnswer(show.tenant(changed))


async def remove(asked: ApiRequest) -> ApiAnswer:
    await tenants.remove(asked.services.engine, _id(asked))
    return ApiAnswer(None, 204)


def _id(asked: ApiRequest) -> str:
    written = asked.path["id"]
    if not 1 <= len(written) <= limits.TENANT_CHARS:
        raise Problem("not_found", "there is no tenant with this id", status=404)
    return written


async def judge_empty(asked: ApiRequest, answer: ApiAnswer) -> None:
    """Refuse to answer an empty list for a tenant that does not exist: its name was probably misspelt. Raises Problem.

    A list that is not empty passes, since the history of a deleted tenant stays readable.
    """
    tenant = asked.query.get("tenant")
    if tenant is not None and isinstance(answer.value, ListOut) and not answer.value.data:
        await check_known(asked.services.engine, tenant)


async def check_known(engine: ManagementEngine, tenant: str, *, field: str = "tenant") -> None:
    """Raise Problem `unknown_tenant` unless there is such a tenant."""
    if tenant in engine.directory.tenants:
        return
    await engine.current()
    known = engine.directory.tenants
    if tenant not in known:
        few = len(known) <= HINT_TENANTS
        hint = did_you_mean(tenant, sorted(known)) if known and few else "GET /v1/tenants"
        raise Problem("unknown_tenant", f"there is no tenant {quoted(tenant)}", field=field, hint=hint)


OPERATIONS = (
    Operation(
        method="POST", path="/v1/tenants", name="create_tenant", handle=create, body=NewTenant,
        about="Make a tenant. The id is yours, or is made here.", answers={201: TenantOut},
        problems=("tenant_exists",),
    ),
    Operation(
        method="GET", path="/v1/tenants", name="list_tenants", handle=list_all, about="Tenants, newest first.",
        answers={200: TenantOut}, is_list=True,
    ),
    Operation(
        method="GET", path="/v1/tenants/{id}", name="get_tenant", handle=get, about="One tenant.",
        answers={200: TenantOut}, problems=("not_found",),
    ),
    Operation(
        method="PATCH", path="/v1/tenants/{id}", name="change_tenant", handle=change, body=TenantChange,
        about="Change a tenant.", answers={200: TenantOut}, problems=("not_found",),
    ),
    Operation(
        method="DELETE", path="/v1/tenants/{id}", name="delete_tenant", handle=remove,
        about="Remove a tenant that has no endpoints and no unfinished deliveries.", answers={204: None},
        problems=("not_found", "tenant_in_use"),
    ),
)  # fmt: skip
