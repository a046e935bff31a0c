"""`Outbox`: writes an event beside the application's own rows, in the application's transaction."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Unpack

from surehook.core import ids
from surehook.core.errors import Problem
from surehook.core.event_fields import EventFields
from surehook.core.json_value import encode_value
from surehook.core.outbox import aggregate_of, fields_of, item, whole
from surehook.core.outbox_tables import TABLE, check_table
from surehook.core.published import check_tenant, decode_item
from surehook.outbox.statements import Statement, insert, insert_numbered
from surehook.outbox.transactions import AwaitedTransaction, BlockingTransaction, Foreign, awaited, blocking


class PutFields(EventFields, total=False):
    """Beside them:

    tenant    whose event this is; that of the `Outbox` if it is not given
    numbered  give the event the next number of its tenant and subject as `sequence`, without gaps: a second transaction that
              does so for the same subject waits for the end of this one
    key       idempotency key: another event with the same key and content is a repeat of the first one
    """

    tenant: str | None
    numbered: bool
    key: str | None


# Fields of the column `fields`, and how `put` calls them.
OTHERS = {"idempotency_key": "key"} | {
    name: name
    for name in (
        "schema_version", "workflow_version", "correlation_id", "causation_id", "source", "occurred_at",
    )
}  # fmt: skip


class Outbox:
    """Publishes by writing a row.

        outbox = Outbox(tenant="acme")

        with engine.begin() as tx:
            tx.execute(…)
            outbox.put(tx, "document.signed", {"document_id": "doc_42"}, subject="doc_42")

    Rolled back, there is no event; committed, it is published once: by the servers of the ledger where the table is part of
    one, else by `surehook outbox run`. One object serves all threads and tasks.

    tenant  whose events these are, where `put` does not say
    table   of the rows, with its schema if it needs one

    Raises Problem `bad_table`.
    """

    def __init__(
        self,
        *,
        tenant: str | None = None,
        table: str = TABLE,
        clock: Callable[[], float] = time.time,
        chance: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._tenant = tenant
        self._table = check_table(table)
        self._clock = clock
        self._chance = chance

    def put(self, tx: Foreign, type: str, data: object, **fields: Unpack[PutFields]) -> str:
        """Write an event in the transaction `tx`, and return its id (`evt_…`), which receivers will see.

        tx      connection or session of a blocking library (`transactions` lists them), in a transaction
        data    any JSON value, or bytes that are JSON already
        fields  `PutFields`

        What no server would take is refused here: raises Problem with the API's codes, `no_transaction` where each statement
        commits by itself, `unknown_transaction` for another library; TypeError for a field that there is not.
        """
        driver = blocking(tx)
        id, statements = self._statements(driver, type, data, fields)
        for sql, parameters in statements:
            driver.run(sql, parameters)
        return id

    async def aput(self, tx: Foreign, type: str, data: object, **fields: Unpack[PutFields]) -> str:
        """`put` in a transaction of a library that is awaited."""
        driver = await awaited(tx)
        id, statements = self._statements(driver, type, data, fields)
        for sql, parameters in statements:
            await driver.run(sql, parameters)
        return id

    def _statements(
        self, driver: BlockingTransaction | AwaitedTransaction, type: str, data: object, given: PutFields
    ) -> tuple[str, list[Statement]]:
        if unknown := given.keys() - PutFields.__annotations__.keys():
            raise TypeError(f"an event has no field {sorted(unknown)[0]!r}")
        tenant = _checked_tenant(self._tenant if given.get("tenant") is None else given["tenant"])
        subject, sequence, is_numbered = (
            given.get("subject"),
            given.get("sequence"),
            given.get("numbered", False),
        )
        if not isinstance(type, str):
            raise Problem("wrong_type", "the type is no text", field="type")
        if not isinstance(subject, str | None):
            raise Problem("wrong_type", "the subject is no text", field="subject")
        if is_numbered and (subject is None or sequence is not None):
            raise Problem(
                "out_of_range", "numbered events have a subject, and no number of yours", field="numbered"
            )
        now_ms = int(self._clock() * 1000)
        id = ids.text(ids.EVENT, ids.uuid7(now_ms, self._chance(10)))
        payload = data if isinstance(data, bytes) else _encoded(data)
        try:
            fields = fields_of({name: given.get(key) for name, key in OTHERS.items()})
            event = whole(decode_item(item(id, tenant, type, payload, subject, sequence, fields)), payload)
        except UnicodeError:
            raise Problem(
                "bad_text", "a text holds half of a surrogate pair, which no UTF-8 text can"
            ) from None
        if isinstance(event, Problem):
            raise event
        row = (
            id, *aggregate_of(type, subject, id), type, payload.decode(), tenant, subject, sequence, fields, now_ms,
        )  # fmt: skip
        if is_numbered:
            return id, insert_numbered(self._table, driver.dialect, driver.marks, row, (tenant, subject))
        return id, insert(self._table, driver.dialect, driver.marks, row)


def _checked_tenant(tenant: str | None) -> str:
    if tenant is None:
        raise Problem(
            "missing_field", "whose event is it?", field="tenant", hint="tenant=…, or Outbox(tenant=…)"
        )
    if not isinstance(tenant, str):
        raise Problem("wrong_type", "the tenant is no text", field="tenant")
    return check_tenant(tenant)


def _encoded(data: object) -> bytes:
    try:
        return encode_value(data)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Problem("invalid_json", f"`data` cannot be written as JSON: {error}", field="data") from None
