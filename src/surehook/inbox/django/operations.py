"""Tables and indexes by a migration, with the very statements that `surehook inbox ddl` prints."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from django.db import router
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from surehook.inbox.django.models import fields_of, options_of
from surehook.inbox.sql import ddl, versions
from surehook.inbox.sql.tables import PREFIX


class Make(Operation, ABC):
    """Make what these names stand for (without their prefix), except what is there: other hands may have made it.

    A table is made as it is defined today: what a later version adds to it, its migration finds done on a database that began
    later.
    """

    reversible = True
    reduces_to_sql = True

    def __init__(self, *names: str) -> None:
        self.names = names

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return self.__class__.__qualname__, list(self.names), {}

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        _run(schema_editor, self._making(self._here(app_label, schema_editor), schema_editor))

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        _run(schema_editor, self._dropping(self._here(app_label, schema_editor)[::-1], schema_editor))

    @abstractmethod
    def _making(self, names: list[str], schema_editor: BaseDatabaseSchemaEditor) -> Iterable[str]:
        """Return the statements that make those that are missing."""

    @abstractmethod
    def _dropping(self, names: list[str], schema_editor: BaseDatabaseSchemaEditor) -> Iterable[str]:
        """Return the statements that drop them."""

    def _table(self, name: str) -> str:
        """The table that this one is of, whose model the routers know."""
        return name

    def _here(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor) -> list[str]:
        """Those that belong into this database, by the routers' word."""
        alias = schema_editor.connection.alias
        return [
            name
            for name in self.names
            if router.allow_migrate(alias, app_label, model_name=self._table(name).lower())
        ]

    def describe(self) -> str:
        return "Make in the inbox: " + ", ".join(self.names)

    @property
    def migration_name_fragment(self) -> str:
        return "_".join(self.names)


class MakeTables(Make):
    """Make tables."""

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        for name in self.names:
            state.add_model(
                ModelState(app_label, name.capitalize(), list(fields_of(name).items()), options_of(name))
            )

    def _making(self, names: list[str], schema_editor: BaseDatabaseSchemaEditor) -> Iterable[str]:
        connection = schema_editor.connection
        there = () if schema_editor.collect_sql else connection.introspection.table_names()
        return ddl.statements(connection.vendor, [name for name in names if PREFIX + name not in there])

    def _dropping(self, names: list[str], schema_editor: BaseDatabaseSchemaEditor) -> Iterable[str]:
        return [f"DROP TABLE {schema_editor.quote_name(PREFIX + name)}" for name in names]


class MakeIndexes(Make):
    """Make indexes of tables that were there before."""

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Nothing: Django's models do not name indexes."""

    def _table(self, name: str) -> str:
        return versions.table_of(name)

    def _making(self, names: list[str], schema_editor: BaseDatabaseSchemaEditor) -> Iterable[str]:
        connection = schema_editor.connection
        missing = names
        if not schema_editor.collect_sql:
            with connection.cursor() as cursor:
                there = {
                    made
                    for name in names
                    for made in connection.introspection.get_constraints(cursor, PREFIX + self._table(name))
                }
            missing = [name for name in names if PREFIX + name not in there]
        return ddl.index_statements(connection.vendor, versions.indexes(missing))

    def _dropping(self, names: list[str], schema_editor: BaseDatabaseSchemaEditor) -> Iterable[str]:
        return ddl.drop_statements(schema_editor.connection.vendor, versions.indexes(names))


def _run(schema_editor: BaseDatabaseSchemaEditor, statements: Iterable[str]) -> None:
    for statement in statements:
        schema_editor.execute(statement, params=None)
