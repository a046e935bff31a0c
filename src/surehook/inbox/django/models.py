"""The inbox's tables as models, to look at: made from the one definition of the tables, so that they cannot differ from it.

Read them (`Runs.objects.filter(state="dead")`), and leave writing to the inbox: its rows belong together. Ids and hashes are
bytes, times Unix milliseconds. They are models at all, and managed ones, so that routers are asked about them, and so that a
`TransactionTestCase` empties them after each test.
"""

from __future__ import annotations

from typing import Any

from django.db import models

from surehook.inbox.sql import described
from surehook.inbox.sql.tables import PREFIX

LABEL = "surehook_inbox"
SINGULAR = {"tries": "try"}
_FIELDS: dict[described.Kind, type[models.Field[Any, Any]]] = {
    "bytes": models.BinaryField,
    "text": models.CharField,
    "long_text": models.TextField,
    "yes_no": models.BooleanField,
    "big": models.BigIntegerField,
    "integer": models.IntegerField,
    "small": models.SmallIntegerField,
}


def fields_of(table: str) -> dict[str, Any]:
    """The fields of a table, by their names."""
    key = described.key(table)
    fields: dict[str, object] = {}
    if len(key) > 1:
        fields["pk"] = models.CompositePrimaryKey(*key, serialize=False)
    for column in described.columns(table):
        choices: dict[str, Any] = {"null": column.nullable}
        if column.length is not None:
            choices["max_length"] = column.length
        if [column.name] == key:
            choices |= {"primary_key": True, "serialize": False}  # as Django writes it into migrations
        fields[column.name] = _FIELDS[column.kind](**choices)
    return fields


def options_of(table: str) -> dict[str, object]:
    """Return what Django has to know of a table beside its columns."""
    # The class is the plural already: "Eventss" is what Django would make of it in the admin and in permissions.
    return {
        "db_table": PREFIX + table,
        "verbose_name": SINGULAR.get(table, table.removesuffix("s")),
        "verbose_name_plural": table,
    }


def _model(table: str) -> type[models.Model]:
    meta = type("Meta", (), {"app_label": LABEL, **options_of(table)})
    made: type[models.Model] = type(
        table.capitalize(), (models.Model,), {"__module__": __name__, "Meta": meta, **fields_of(table)}
    )
    return made


_MODELS = {table.capitalize(): _model(table) for table in described.names()}
globals().update(_MODELS)
Conflicts = _MODELS["Conflicts"]
Events = _MODELS["Events"]
Requests = _MODELS["Requests"]
Steps = _MODELS["Steps"]
