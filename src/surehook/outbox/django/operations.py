"""Tables by a migration, with the very statements that `surehook outbox ddl` prints."""

from __future__ import annotations

from django.db import router
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState

from surehook.outbox import ddl


class MakeOutbox(Operation):
    """Make the tables of an outbox, which have no models: an application writes them by `Outbox.put` alone."""

    reversible = True
    reduces_to_sql = True

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        """Nothing: there are no models."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._run(app_label, schema_editor, down=False)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._run(app_label, schema_editor, down=True)

    def describe(self) -> str:
        return "Make the tables of the outbox"

    @property
    def migration_name_fragment(self) -> str:
        return "outbox"

    def _run(self, app_label: str, schema_editor: BaseDatabaseSchemaEditor, *, down: bool) -> None:
        connection = schema_editor.connection
        if router.allow_migrate(connection.alias, app_label):
            for statement in ddl.statements(connection.vendor, down=down):
                schema_editor.execute(statement, params=None)
