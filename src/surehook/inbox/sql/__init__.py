"""The inbox in the application's own database, through SQLAlchemy Core: SQLite, PostgreSQL, MySQL and MariaDB.

Written once, for connections that block. An asynchronous engine runs the same functions by `AsyncConnection.run_sync`, so
there is one text of every statement and one order of locks.

    tables.py   what is stored; printed by `surehook inbox ddl`
    versions.py which version of them a database has, and how it gets the newest
    rights.py   the right that a role lacks to make them
    ddl.py      the tables as SQL, and for Alembic
    arriving.py requests, events, repeats, conflicts
    claiming.py leases
    settling.py ends of runs, replays, finalize and reject
    tries.py    attempts that failed; how an event came
    receipts.py receipts that senders asked for
    showing.py  lists, counts, retention
    bulk.py     many rows in one call of the driver
    transaction.py  one transaction with all of that
    deferred_begin.py  on SQLite: nothing is locked before something is written
    interrupting.py    on SQLite: a transaction or a statement ended from outside
    driver_connections.py  the connections under SQLAlchemy's
    open_transactions.py  what a thread or task is in, ended from outside
    handler_statements.py  what a handler's statement leaves (harmless_functions.py), and forgetting.py: what is taken back
    stores.py   transactions of both kinds of engine
    store_errors.py  the one place where errors of drivers are translated
    engines.py  an engine from a URL, with the settings that durability needs
    pooler.py   no prepared statements where a pooler lends connections

Where rows are locked: runs by `SKIP LOCKED` when claimed and plainly when processed, documents in the order of their keys.
SQLite has one writer, whose transactions begin as such (`BEGIN IMMEDIATE`); those that only read begin without it.
"""

try:
    import sqlalchemy as sqlalchemy
except ModuleNotFoundError as error:
    if error.name != "sqlalchemy":
        raise
    raise ModuleNotFoundError(
        f"{__name__} needs the package sqlalchemy: pip install 'surehook[inbox]'", name=error.name
    ) from error
