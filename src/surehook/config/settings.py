"""Settings: one flat list of names, each value typed, checked and aware of its origin.

A setting is declared once: its type, kind, unit, meaning and default stand together here. The engine, the network
client and the door read what concerns them from this list (`delivery/settings.py`, `wire/settings.py`, `callers.py`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from surehook.config import sources
from surehook.config.kinds import (
    BROKER,
    DATABASE,
    FILE,
    FLAG,
    FORMAT,
    HOST,
    HOSTS,
    KEY,
    LEVEL,
    NETWORKS,
    OUTBOX,
    PREFIXES,
    PROXY,
    REDIS,
    SCHEMA,
    TABLE,
    TENANT,
    TENANT_NETWORKS,
    URL,
    one_of,
    whole,
)
from surehook.config.setting import Setting, declared, setting

Networks = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Settings:
    """Everything a process can be told. Defaults are those of a small machine with nothing set up."""

    # fmt: off
    database_url: str = setting("sqlite:///surehook.db", DATABASE, "URL", "where the ledger is kept")
    database_schema: str | None = setting(
        None, SCHEMA, "name", "schema of the ledger's tables on PostgreSQL; absent: the first that the role has"
    )
    redis_url: str | None = setting(None, REDIS, "URL", "where processes share what they know of endpoints")
    host: str = setting("127.0.0.1", HOST, "address", "address to listen on")
    port: int = setting(8080, whole(0, 65_535), "port", "port to listen on; 0 lets the system choose")
    role: str = setting("all", one_of("all", "api", "worker", "console"), "word", "what this process does")
    lane: str = setting("both", one_of("both", "first", "retry"), "word", "the lane that a worker delivers")
    processes: int = setting(1, whole(1, 64), "processes", "how many processes share the port and the work")
    connections: int = setting(4_096, whole(16, 60_000), "connections", "callers that may be connected at once, at most")
    bodies_mb: int = setting(64, whole(16, 65_536), "MiB", "bodies of requests that are being read, at most")
    broker_url: str | None = setting(None, BROKER, "URL", "RabbitMQ that brings ready work to workers", secret=True)
    api_key: str | None = setting(
        None, KEY, "key", "bootstrap admin key of the server, and the key that commands send", secret=True
    )
    url: str | None = setting(None, URL, "URL", "where commands find the server; absent: host and port of this list")
    outbox_url: str | None = setting(
        None, OUTBOX, "URL", "database of the application whose outbox `surehook outbox` reads"
    )
    outbox_table: str | None = setting(
        None, TABLE, "name", "table of an outbox in the ledger's own database, which servers that take events publish"
    )
    tenant: str | None = setting(None, TENANT, "name", "tenant that commands mean when none is given")
    allow_http: bool = setting(False, FLAG, "switch", "let endpoints have http:// addresses")
    allow_networks: Networks = setting((), NETWORKS, "CIDRs", "networks that may be reached although they are not public")
    tenant_networks: dict[str, Networks] = setting(
        {}, TENANT_NETWORKS, "CIDRs", "networks that one tenant's endpoints may reach as well"
    )
    deny_networks: Networks = setting((), NETWORKS, "CIDRs", "networks that are never reached, whatever else allows them")
    nat64_prefixes: Networks = setting((), PREFIXES, "CIDRs", "own NAT64 prefixes: judged by the IPv4 address inside")
    own_hosts: tuple[str, ...] = setting((), HOSTS, "names", "own names of this server, which no endpoint may point at")
    ca_file: str | None = setting(None, FILE, "file", "authorities that are trusted beside the system's, as PEM")
    proxy: str | None = setting(None, PROXY, "URL", "egress proxy that all requests leave through, by CONNECT", secret=True)
    metrics_open: bool = setting(False, FLAG, "switch", "serve /metrics without a key")
    log_level: str = setting("info", LEVEL, "word", "least important line that is logged")
    log_format: str = setting("auto", FORMAT, "word", "form of log lines; auto: console on a terminal, else json")
    retention_days: int = setting(30, whole(1, 3_650), "days", "how long finished events and attempts are kept")
    body_retention_days: int = setting(30, whole(1, 3_650), "days", "how long bodies of finished events are kept")
    disk_floor_mb: int = setting(64, whole(0, 1_048_576), "MiB", "free disk below which events are refused (503)")
    slots_first: int = setting(512, whole(1, 16_384), "requests", "requests in flight in the first lane, at most")
    slots_retry: int = setting(512, whole(1, 16_384), "requests", "requests in flight in the retry lane, at most")
    endpoint_slots: int = setting(32, whole(1, 4_096), "requests", "requests in flight to one endpoint, at most")
    waiting_events: int = setting(20_000, whole(1, 1_000_000), "events", "events waiting for their commit, at most")
    memory_deliveries: int = setting(100_000, whole(100, 10_000_000), "deliveries", "deliveries in memory, at most")
    memory_mb: int = setting(64, whole(1, 65_536), "MiB", "request bodies in memory, at most")
    record_window_ms: int = setting(5, whole(0, 1_000), "ms", "how long a result waits for its neighbours")
    record_rows: int = setting(512, whole(1, 10_000), "results", "results recorded in one transaction, at most")
    grace_s: int = setting(10, whole(0, 600), "s", "time for requests in flight to finish at shutdown")
    # fmt: on
    origins: dict[str, str] = field(default_factory=dict)
    file: str | None = None  # the settings file that was read, or None

    @classmethod
    def load(
        cls,
        *,
        env: Mapping[str, str] | None = None,
        file: str | os.PathLike[str] | None = None,
        flags: Mapping[str, object] | None = None,
        dev: bool = False,
    ) -> Settings:
        """Gather the settings of this process.

        env    the environment; None: the real one
        file   the settings file, which must exist; None: the one SUREHOOK_CONFIG names, else surehook.toml
               in the current folder where there is one
        flags  values given on the command line by setting name; None values were not given
        dev    start from the defaults of `serve --dev`

        Raises SettingsError naming the key, the place and what is accepted.
        """
        env = os.environ if env is None else env
        path = sources.find_file(env, file)
        chosen, origins = sources.gather(BY_NAME, env=env, file=path, flags=flags or {}, dev=dev)
        return cls(**chosen, origins=origins, file=None if path is None else str(path))

    def origin(self, name: str) -> str:
        """The place a value came from: `default`, `--dev`, `file NAME`, `environment NAME` or `flag --name`."""
        return self.origins.get(name, "default")

    @property
    def server_url(self) -> str:
        """The address at which commands look for the server: `url`, else the one this machine would serve on."""
        if self.url is not None:
            return self.url
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 (not a bind)
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"

    @property
    def is_sqlite(self) -> bool:
        """The ledger is a file, which one process serves at a time."""
        return self.database_url.startswith("sqlite:")

    @property
    def ledger_url(self) -> str:
        """The URL to connect to, with the schema."""
        if self.database_schema is None:
            return self.database_url
        return (
            f"{self.database_url}{'&' if '?' in self.database_url else '?'}search_path={self.database_schema}"
        )

    @property
    def database_path(self) -> Path:
        """The SQLite file, relative to the current folder unless the URL has four slashes."""
        return Path(self.database_url.removeprefix("sqlite:///"))

    def shown(self, name: str) -> str:
        """A value as people may see it: secrets are redacted, absent ones are empty."""
        return BY_NAME[name].shown(getattr(self, name))

    def __repr__(self) -> str:
        """Redacted: settings end up in logs."""
        return "Settings(" + ", ".join(f"{s.name}={self.shown(s.name)}" for s in SETTINGS) + ")"


BY_NAME: Mapping[str, Setting] = declared(Settings)
SETTINGS: tuple[Setting, ...] = tuple(BY_NAME.values())
