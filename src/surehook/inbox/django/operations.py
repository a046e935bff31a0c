"""Tables by a migration, with the very statements that `surehook inbox ddl` prints."""

from __future__ import annotations

from collections.abc import Collection

from django.db import router
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ModelState, ProjectState

from surehook.inbox.django.models import fields_of, options_of
from surehook.inbox.sql import ddl, versions
from surehook.inbox.sql.tables import PREFIX


class MakeTables(Operation):
    """Make the tables of these names (without their prefix), except those that are there: other hands may have made them.

    A table is made as it is defined today: what a later version adds to it, its migration finds done on a database that began
    later.
    """

    reversible = True
    reduces_to_sql = True

    def __init__(self, *names: str) -> None:
        self.names = names

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return self.__class__.__qualname__, list(self.names), {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        for name in self.names:
            state.add_model(
                ModelState(app_label, name.capitalize(), list(fields_of(name).items()), options_of(name))
            )

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        connection = schema_editor.connection
        there = () if schema_editor.collect_sql else connection.introspection.table_names()
        wanted = [name for name in self._here(app_label, connection.alias) if PREFIX + name not in there]
        for statement in ddl.statements(connection.vendor, wanted):
            schema_editor.execute(statement, params=None)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for name in reversed(self._here(app_label, schema_editor.connection.alias)):
            schema_editor.execute(f"DROP TABLE {schema_editor.quote_name(PREFIX + name)}", params=None)

    def _here(self, app_label: str, alias: str) -> list[str]:
        """Those that belong into this database, by the routers' word."""
        return [
            name for name in self.names if router.allow_migrate(alias, app_label, model_name=name.lower())
        ]

    def describe(self) -> str:
        return "Make the tables of the inbox: " + ", ".join(self.names)

    @property
    def migration_name_fragment(self) -> str:
        return "_".join(self.names)


class MakeIndexes(Operation):
    """Make the indexes of these names (without their prefix), except those that are there, as a table made today has them."""

    reversible = True
    reduces_to_sql = True

    def __init__(self, table: str, *names: str) -> None:
        self.table, self.names = table, names

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return self.__class__.__qualname__, [self.table, *self.names], {}

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Nothing: Django's models do not name indexes."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        there = () if schema_editor.collect_sql else self._there(schema_editor)
        missing = [name for name in self._here(app_label, schema_editor) if PREFIX + name not in there]
        for statement in ddl.index_statements(schema_editor.connection.vendor, versions.indexes(missing)):
            schema_editor.execute(statement, params=None)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        for statement in ddl.drop_statements(
            schema_editor.connection.vendor, versions.indexes(self._here(app_label, schema_editor))
        ):
            schema_editor.execute(statement, params=None)

    def _here(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor) -> Collection[str]:
        """All of them if the table belongs into this database, by the routers' word."""
        is_here = router.allow_migrate(schema_editor.connection.alias, app_label, model_name=self.table)
        return self.names if is_here else ()

    def _there(self, schema_editor: BaseDatabaseSchemaEditor) -> Collection[str]:
        connection = schema_editor.connection
        with connection.cursor() as cursor:
            return connection.introspection.get_constraints(cursor, PREFIX + self.table)

    def describe(self) -> str:
        return "Make indexes of the inbox: " + ", ".join(self.names)

    @property
    def migration_name_fragment(self) -> str:
        return "_".join(self.names)
