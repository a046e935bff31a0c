"""Private servers for tests, benches and fault campaigns: PostgreSQL, MariaDB, Redis, RabbitMQ, and a proxy that cuts.

They lie beside the tests and not in the product, because they start other people's programs, which the product never
does; programs of the lab import them as `tests.servers`.

- Binaries are the installed ones (`make services`); what is not installed is `Missing`, which a test turns into a skip.
- Each server listens on loopback, on a free port below the ephemeral range, so that after a restart the port is still its
  own, and keeps everything in a folder below the run's own (`folder.py`). Root gives itself up to `nobody` for them.
- A server is known by where it works: every process whose working directory lies in its folder is its own. So whoever
  knows the folder can kill, freeze and sweep, also what was orphaned, also from another process.
- A watchdog process sweeps the whole folder when the run ends, however it ends.
"""

from tests.servers.folder import run_folder
from tests.servers.installed import Missing, missing
from tests.servers.mariadb import MariaDb, mariadb
from tests.servers.pgbouncer import PgBouncer
from tests.servers.postgres import Postgres, postgres
from tests.servers.proxy import CuttingProxy
from tests.servers.rabbitmq import Rabbit, Rabbits, rabbitmq
from tests.servers.redis import Redis

__all__ = [
    "CuttingProxy", "MariaDb", "Missing", "PgBouncer", "Postgres", "Rabbit", "Rabbits", "Redis", "mariadb", "missing", "postgres", "rabbitmq",
    "run_folder",
]  # fmt: skip
